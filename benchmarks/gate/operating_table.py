"""Counts how often gates fail and pass known changes, the old rule beside the new one.

    python -m benchmarks.gate.operating_table [--data FILE.npz ...] [--gates 200] [--fast]
        [--ceiling 12]

A recorded launch has 12 pairs of blocks of at most 20 inferences. With `--fast` those of models
under 10 ms are as long as the gate makes them, which looks for rare stalls. Whole gates run on
recorded launches of one artifact against itself (and on made-up ones), each from a random launch
on, with a truth put in. Beside it a gate that uses the medians of launches only, as the gate did
before. `--ceiling` is that of a waiver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from tests.support.simulated.simulated_launches import (
    FastBench,
    Gate,
    Noise,
    Scenario,
    SimulatedBench,
    gates,
)

from benchmarks.kit.command import command_line
from benchmarks.kit.operating_scenarios import scenarios, synthetic
from tunegate.config import GateConfig
from tunegate.decide.stalls import WANTED_BELOW_MS
from tunegate.review.gate_rules import gate_at

NEW = GateConfig()
OLD = GateConfig(rare_launches=0.0, tail_margin_percent=1000.0)
DATA = Path(__file__).parents[1] / "data" / "launches.npz"
_TVM_START_SECONDS = 1.3


def main() -> None:
    options = command_line(
        __doc__,
        data=[DATA],
        gates=200,
        only="",
        series="",
        rare=NEW.rare_launches,
        fast=False,
        ceiling=0.0,
    )
    noises = [
        *(each for path in options.data for each in recorded(path)),
        *(synthetic(f"made up, {100 * s:g}%", s) for s in (0.003, 0.01, 0.03)),
    ]
    noises = [noise for noise in noises if options.series in noise.name]
    if options.fast:
        noises = [noise for noise in noises if np.median(noise.times_ms) < WANTED_BELOW_MS]
    wanted = [each for each in scenarios() if options.only in each.name]
    print(HEAD)
    for scenario in wanted:
        print(
            row_of(
                scenario,
                noises,
                options.gates,
                _config(options.rare, options.ceiling),
                FastBench if options.fast else SimulatedBench,
            ),
            flush=True,
        )


HEAD = (
    "| true change | mean | new: fail | pass | waived | undecided | invalid | worst series "
    "| seconds, median | p95 | medians only: fail | pass | seconds, median | p95 |\n"
    f"| --- |{' --: |' * 13}"
)


def recorded(path: Path) -> Iterator[Noise]:
    """Series of `bench-rules`, or one array `data` of nanoseconds."""
    with np.load(path, allow_pickle=False) as archive:
        if "data" in archive.files:
            yield Noise(path.stem, archive["data"].astype(float) / 1e6, 2.0)
            return
        for key in sorted(archive.files):
            if key.endswith(".times_ns"):
                name = key.removesuffix(".times_ns")
                seconds = float(archive[f"{name}.seconds"])
                start = _TVM_START_SECONDS if "tvm" in name else 0.25
                yield Noise(name, archive[key].astype(float) / 1e6, seconds, start)


def row_of(
    scenario: Scenario,
    noises: Sequence[Noise],
    count: int,
    configs: tuple[GateConfig, GateConfig | None],
    kind: type[SimulatedBench],
) -> str:
    config, waived = configs
    new = [gates(n, scenario, config, count, seed, kind, waived) for seed, n in enumerate(noises)]
    old = [gates(n, scenario, OLD, count, seed, kind) for seed, n in enumerate(noises)]
    wrong = "fail" if scenario.is_unchanged else "pass"
    worst = max(range(len(noises)), key=lambda at: _share(new[at], wrong))
    every, before = [g for each in new for g in each], [g for each in old for g in each]
    seconds = [gate.seconds for gate in every]
    spent_before = [gate.seconds for gate in before]
    mark = " *" if scenario.is_promised or scenario.is_unchanged else ""
    cells = [
        scenario.name + mark,
        f"{scenario.mean_percent:+.1f}%",
        *(
            f"{100 * _share(every, what):.1f}%"
            for what in ("fail", "pass", "waived", "undecided", "invalid-env")
        ),
        f"{100 * _share(new[worst], wrong):.1f}% {wrong} ({noises[worst].name})",
        f"{np.median(seconds):.0f}",
        f"{np.percentile(seconds, 95):.0f}",
        *(f"{100 * _share(before, what):.1f}%" for what in ("fail", "pass")),
        f"{np.median(spent_before):.0f}",
        f"{np.percentile(spent_before, 95):.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _config(rare: float, ceiling_percent: float) -> tuple[GateConfig, GateConfig | None]:
    """Returns the gate, and that of a waiver with this ceiling, None for 0."""
    gate = GateConfig(rare_launches=rare)
    return gate, gate_at(gate, ceiling_percent) if ceiling_percent else None


def _share(found: Sequence[Gate], outcome: str) -> float:
    return sum(gate.outcome == outcome for gate in found) / max(1, len(found))


if __name__ == "__main__":
    main()
