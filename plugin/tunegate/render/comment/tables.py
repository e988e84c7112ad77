"""The tables of the comment. A comment is 780 pixels wide: five columns at most."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.render.operators import TunedRow
from tunegate.render.stopped import stopped_words
from tunegate.render.tables.table import (
    Column,
    Identifier,
    ReportTable,
    number_column,
    text_column,
)
from tunegate.render.units import NONE
from tunegate.wording.latency import milliseconds

MAX_COLUMNS = 5


def comment_tasks_table(rows: Sequence[TunedRow]) -> ReportTable:
    """Returns the table of tuning by task; times are of one call."""
    columns: tuple[Column[TunedRow], ...] = (
        text_column("Task", lambda row: Identifier(row.label)),
        text_column("Schedule", lambda row: row.source),
        number_column("Trials", lambda row: str(row.trials)),
        number_column("Call alone", _one_call),
        text_column("Ended", lambda row: stopped_words(row.stopped)),
    )
    return ReportTable(columns, rows)


def narrowed(table: ReportTable, *titles: str) -> ReportTable:
    """A table without as many of these columns, in this order, as have no room."""
    for title in titles:
        if sum(not column.under for column in table.columns) <= MAX_COLUMNS:
            break
        table = table.without(title)
    return table


def _one_call(row: TunedRow) -> str:
    """Both times, where tuning made a difference."""
    if row.best_ms is None or row.before_ms is None:
        return milliseconds(row.best_ms) if row.best_ms is not None else NONE
    after = milliseconds(row.best_ms)
    before = milliseconds(row.before_ms)
    return after if before == after else f"{before} → {after}"
