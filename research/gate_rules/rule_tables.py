"""The tables of `bench_rules`, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.replayed_gates import ReplayOutcome

from research.gate_rules.power import SLOWDOWNS, Alarms, Coverage, Verdicts
from tunegate.report.markdown import markdown_table
from tunegate.report.table import CellContent, Column, ReportTable, number_column, text_column


def alarms_table(found: Sequence[Alarms]) -> str:
    """Percent of jobs flagged as slower, a row for each rule, a column for each true slowdown."""
    columns: list[Column[Alarms]] = [text_column("rule", lambda row: row.name)]
    columns += [_share_of_alarms(at) for at in range(len(SLOWDOWNS))]
    return markdown_table(ReportTable(tuple(columns), found))


def verdicts_table(found: Sequence[Verdicts]) -> str:
    """A table of our own rule: what became of whole gates, and what they cost."""
    columns: tuple[Column[Verdicts], ...] = (
        number_column("margin", lambda row: f"{row.margin_percent:g}%"),
        number_column("true slowdown", lambda row: _slowdown(row.slowdown)),
        number_column("gates", lambda row: str(len(row.outcomes))),
        _share_of("fail"),
        _share_of("pass"),
        _share_of("inconclusive"),
        _share_of("invalid-env"),
        number_column("seconds, median", lambda row: f"{row.median_seconds:.0f}"),
        number_column("p95", lambda row: f"{row.p95_seconds:.0f}"),
    )
    return markdown_table(ReportTable(columns, found))


def coverage_table(found: Sequence[Coverage]) -> str:
    """The one-sided 95% bounds of so many launches: how often the truth is on their side."""
    columns: tuple[Column[Coverage], ...] = (
        number_column("launches", lambda row: str(row.launches)),
        number_column("lower bound", lambda row: _percent(row.low)),
        number_column("upper bound", lambda row: _percent(row.high)),
    )
    return markdown_table(ReportTable(columns, found))


def _share_of_alarms(at: int) -> Column[Alarms]:
    def cell(row: Alarms) -> CellContent:
        return _percent(row.shares[at])

    return number_column(_slowdown(SLOWDOWNS[at]), cell)


def _share_of(outcome: ReplayOutcome) -> Column[Verdicts]:
    return number_column(outcome, lambda row: _percent(row.share(outcome)))


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _slowdown(share: float) -> str:
    return f"+{100 * share:g}%"
