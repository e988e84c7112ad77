"""Blocks of Markdown: tables and folds."""

from __future__ import annotations

from typing import Any, assert_never

from tunegate.report.escape import code, prose
from tunegate.report.headline import MARKS, STATUS_WORDS
from tunegate.report.table import (
    CellContent,
    ChangeInterval,
    Column,
    Identifier,
    ReportTable,
    SignedTime,
    StatusWord,
)
from tunegate.report.units import NONE, interval, percent

NO_BREAK = "\u00a0"


def markdown_table(table: ReportTable) -> str:
    """A table. A number stays on one line with its unit; what belongs under another column stands
    below it in the same cell."""
    shown = [column for column in table.columns if not column.under]
    head = [column.title for column in shown]
    rule = ["--:" if column.is_number else "---" for column in shown]
    body = [_row(list(zip(table.columns, row, strict=True)), shown) for row in table.cells()]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *body))


def _row(row: list[tuple[Column[Any], CellContent]], shown: list[Column[Any]]) -> list[str]:
    """An empty text has no line of its own."""
    cells = {column.title: _drawn(cell, column) for column, cell in row if not column.under}
    for column, cell in row:
        below = _drawn(cell, column) if column.under and cell else ""
        if below:
            cells[column.under] += f"<br>{below}"
    return [cells[column.title] for column in shown]


def _drawn(cell: CellContent, column: Column[Any]) -> str:
    match cell:
        case Identifier(text=text):
            return code(text)
        case StatusWord(status=status):
            return f"{MARKS[status]} {STATUS_WORDS[status]}"
        case ChangeInterval(interval=found):
            if found is None:
                return NONE
            shown = f"**{percent(found.center)}**<br>{interval(found)}"
            return shown.replace(" ", NO_BREAK)
        case SignedTime():
            return cell.text.replace(" ", NO_BREAK)
        case str() as text:
            return text.replace(" ", NO_BREAK) if column.is_number else prose(text)
        case _ as never:
            assert_never(never)


def fold(title: str, body: str) -> str:
    """A section that opens on a click."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"
