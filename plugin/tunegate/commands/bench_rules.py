"""`tunegate bench-rules`: our rule and those of others on recorded launches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tunegate.commands.standard_output import write_line
from tunegate.edges.recorded_launches import read_launches
from tunegate.errors import PASS
from tunegate.gate.replay.power import (
    COVERED_LAUNCHES,
    PEERS,
    SLOWDOWNS,
    Alarms,
    alarms,
    coverage,
    verdicts,
)
from tunegate.gate.replay.recorded import Series
from tunegate.render.rule_tables import alarms_table, coverage_table, verdicts_table

_MARGINS_PERCENT = (2.0, 3.0)
_AROUND_MARGIN_PERCENT = (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0)


def run(data: Path) -> int:
    """Prints Markdown. Raises ArtifactError for a file that holds no launches."""
    for series in read_launches(data):
        for line in _told(series):
            write_line(line)
    return PASS


def _told(series: Series) -> Iterator[str]:
    yield f"### {series.name}\n"
    yield (
        f"{len(series)} launches, {series.seconds_per_launch:.1f} s each; spread of their effects "
        f"{100 * series.effects.std(ddof=1):.2f} %.\n"
    )
    yield "Jobs that report a slowdown, by the true one:\n"
    ours = [_as_alarms(series, margin) for margin in _MARGINS_PERCENT]
    yield alarms_table([*(alarms(series, peer) for peer in PEERS), *ours]) + "\n"
    yield "Our gates, none of which shares a launch with another:\n"
    found = [
        verdicts(series, slowdown, margin)
        for margin in _MARGINS_PERCENT
        for slowdown in (0.0, *((margin + d) / 100 for d in _AROUND_MARGIN_PERCENT))
    ]
    yield verdicts_table(found) + "\n"
    yield "Coverage of one-sided 95 % bounds:\n"
    yield coverage_table([coverage(series, launches) for launches in COVERED_LAUNCHES]) + "\n"


def _as_alarms(series: Series, margin_percent: float) -> Alarms:
    shares = tuple(
        verdicts(series, slowdown, margin_percent).shares["fail"] for slowdown in SLOWDOWNS
    )
    return Alarms(f"tunegate, margin {margin_percent:g} %", shares)
