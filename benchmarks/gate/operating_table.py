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

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from tests.support.simulated.simulated_launches import (
    Gate,
    Noise,
    Rng,
    Scenario,
    SimulatedBench,
    gates,
    launch_of,
    scaled,
)

from benchmarks.kit.command import command_line
from benchmarks.kit.operating_scenarios import scenarios, synthetic
from tunegate.artifacts.measurements import Launch
from tunegate.config import GateConfig
from tunegate.decide.decision import within_spread
from tunegate.decide.stalls import WANTED_BELOW_MS
from tunegate.measure.pair_bench import block_size
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


class FastBench(SimulatedBench):
    """Makes launches of a fast model as the product does: of as many pairs as it asks for, with
    blocks of 20 inferences and 50 ms. Recorded blocks that follow each other make one."""

    def __init__(
        self, noise: Noise, recorded: Sequence[Sequence[Launch]], scenario: Scenario, rng: Rng
    ) -> None:
        super().__init__(noise, recorded, scenario, rng)
        usual_ms = float(np.median(noise.times_ms))
        self._block = block_size(usual_ms, usual_ms)
        self.pair_seconds = 2 * self._block * usual_ms / 1000
        self.start_seconds = 2 * noise.start_seconds
        self._blocks = noise.times_ms.swapaxes(1, 2).reshape(len(noise.times_ms), 2, -1)

    def launch(self, pairs: int) -> Launch:
        most = math.ceil(self._block * pairs / self._blocks.shape[2])
        at = (int(self._rng.integers(len(self._blocks))) + np.arange(most)) % len(self._blocks)
        sides = self._blocks[at].swapaxes(0, 1).reshape(2, -1)[:, : self._block * pairs]
        times = sides.reshape(2, pairs, self._block).swapaxes(0, 1).copy()
        if self._scenario.inside is not None:
            times[:, 1] = self._scenario.inside(times[None, :, 1])[0]
        factors = self._scenario.factors(self.starts, self._rng)
        self.starts += 1
        self.within_spread = within_spread(*np.median(times, axis=2).T.tolist())
        seconds = self.start_seconds + pairs * self.pair_seconds
        return scaled(launch_of(times), *factors, seconds)


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
