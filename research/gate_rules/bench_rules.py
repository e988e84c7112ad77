"""Prints what our rule and those of others would have said about recorded launches. Run
`python -m research.gate_rules.bench_rules --data benchmarks/data/launches.npz`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from research.command_line import carried_out
from research.gate_rules.pooled import pooled_alarms, pooled_coverage, pooled_verdicts
from research.gate_rules.power import (
    COVERED_LAUNCHES,
    PEERS,
    SLOWDOWNS,
    Alarms,
    Coverage,
    Verdicts,
    alarms,
    interval_coverage,
    verdicts,
)
from research.gate_rules.recorded import RecordedSeries
from research.gate_rules.recorded_launches import read_launches
from research.gate_rules.rule_tables import alarms_table, coverage_table, verdicts_table
from tunegate.cli.command import Command
from tunegate.cli.handlers.reporting import write_line
from tunegate.cli.option import Option
from tunegate.cli.shared_options import Options
from tunegate.errors import PASS
from tunegate.wording import plural

_MARGINS_PERCENT = (2.0, 3.0)
_AROUND_MARGIN_PERCENT = (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0)


class BenchRulesOptions(Options, frozen=True, kw_only=True):
    """The recorded launches."""

    data: Annotated[Path, Option("recorded launches, .npz", "FILE", Path)]


COMMAND = Command(
    name="research.gate_rules.bench_rules",
    summary="show what gates would have said about recorded launches",
    options=BenchRulesOptions,
    handler="research.gate_rules.bench_rules:run",
    examples=("python -m research.gate_rules.bench_rules --data benchmarks/data/launches.npz",),
)


def main(arguments: Sequence[str]) -> int:
    return carried_out(COMMAND, run, arguments)


class _Found(msgspec.Struct, frozen=True):
    """The rows of the three tables."""

    title: str
    line: str
    alarms: list[Alarms]
    verdicts: list[Verdicts]
    coverage: list[Coverage]


def run(options: BenchRulesOptions) -> int:
    """Prints Markdown, all series together first. Raises ArtifactError for a file that holds no
    launches."""
    several = list(read_launches(options.data))
    found = [_find(series) for series in several]
    if len(found) > 1:
        found.insert(0, _together(found, sum(map(len, several))))
    for each in found:
        for block in _lines(each):
            write_line(block)
    return PASS


def _find(series: RecordedSeries) -> _Found:
    line = (
        f"{len(series)} launches, {series.seconds_per_launch:.1f} s each; spread of their effects "
        f"{100 * series.effects.std(ddof=1):.2f}%."
    )
    return _Found(
        series.name,
        line,
        [
            *(alarms(series, peer) for peer in PEERS),
            *(_as_alarms(series, margin) for margin in _MARGINS_PERCENT),
        ],
        [
            verdicts(series, slowdown, margin)
            for margin in _MARGINS_PERCENT
            for slowdown in (0.0, *((margin + d) / 100 for d in _AROUND_MARGIN_PERCENT))
        ],
        [interval_coverage(series, launches) for launches in COVERED_LAUNCHES],
    )


def _together(found: list[_Found], launches: int) -> _Found:
    return _Found(
        "All series",
        f"{plural(launches, 'launch', 'launches')} of {len(found)} series.",
        [pooled_alarms(rows) for rows in zip(*(each.alarms for each in found), strict=True)],
        [pooled_verdicts(rows) for rows in zip(*(each.verdicts for each in found), strict=True)],
        [pooled_coverage(rows) for rows in zip(*(each.coverage for each in found), strict=True)],
    )


def _lines(found: _Found) -> Iterator[str]:
    yield f"### {found.title}\n"
    yield found.line + "\n"
    yield "Jobs that report a slowdown, by the true one:\n"
    yield alarms_table(found.alarms) + "\n"
    yield "Our gates, none of which shares a launch with another:\n"
    yield verdicts_table(found.verdicts) + "\n"
    yield "Coverage of one-sided 95% bounds:\n"
    yield coverage_table(found.coverage) + "\n"


def _as_alarms(series: RecordedSeries, margin_percent: float) -> Alarms:
    shares = tuple(
        verdicts(series, slowdown, margin_percent).share("fail") for slowdown in SLOWDOWNS
    )
    return Alarms(f"tunegate, margin {margin_percent:g}%", shares)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
