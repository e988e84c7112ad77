"""The tables of `tunegate bench-rules`, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tunegate.gate.replay.ours import ReplayOutcome
from tunegate.gate.replay.power import SLOWDOWNS, Alarms, Coverage, Verdicts
from tunegate.render.blocks import Column, table
from tunegate.render.escape import prose


def alarms_table(found: Sequence[Alarms]) -> str:
    """Percent of jobs flagged as slower, a row for each rule, a column for each true slowdown."""
    columns = (Column("rule"), *(Column(_slowdown(each), number=True) for each in SLOWDOWNS))
    rows = [
        (prose(each.name), *(f"{100 * share:.1f} %" for share in each.shares)) for each in found
    ]
    return table(columns, rows)


def verdicts_table(found: Sequence[Verdicts]) -> str:
    """A table of our own rule: what became of whole gates, and what they cost."""
    columns = (
        Column("margin", number=True),
        Column("true slowdown", number=True),
        Column("gates", number=True),
        Column("fail", number=True),
        Column("pass", number=True),
        Column("inconclusive", number=True),
        Column("invalid-env", number=True),
        Column("seconds, median", number=True),
        Column("p95", number=True),
    )
    return table(columns, [tuple(_verdict_cells(each)) for each in found])


def coverage_table(found: Sequence[Coverage]) -> str:
    """The one-sided 95 % bounds of so many launches: how often the truth is on their side."""
    columns = (
        Column("launches", number=True),
        Column("lower bound", number=True),
        Column("upper bound", number=True),
    )
    rows = [
        (str(each.launches), f"{100 * each.low:.1f} %", f"{100 * each.high:.1f} %")
        for each in found
    ]
    return table(columns, rows)


def _verdict_cells(each: Verdicts) -> Iterator[str]:
    yield f"{each.margin_percent:g} %"
    yield _slowdown(each.slowdown)
    yield str(len(each.outcomes))
    outcomes: tuple[ReplayOutcome, ...] = ("fail", "pass", "inconclusive", "invalid-env")
    for outcome in outcomes:
        yield f"{100 * each.share(outcome):.1f} %"
    yield f"{each.median_seconds:.0f}"
    yield f"{each.p95_seconds:.0f}"


def _slowdown(share: float) -> str:
    return f"+{100 * share:g} %"
