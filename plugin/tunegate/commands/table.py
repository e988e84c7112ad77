"""A table for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text


class Output(Console):
    """Standard output with tables and colours. A reader that has gone away is a fault like any
    other: rich itself would end the process with 1, a regression."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Cells are shown as they are: they may come from a store that others write to, and nothing
    in them is markup. A cell that is a Text has its own style."""
    shown = Text(title) if title else None
    table = Table(title=shown, title_justify="left", box=SIMPLE_HEAD, show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(cell) for cell in row))
    Output().print(table)


def show_lines(lines: Iterable[str]) -> None:
    console = Output()
    for line in lines:
        console.print(Text(line), soft_wrap=True)  # a key or an address is copied whole


def _cell(cell: object) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))
