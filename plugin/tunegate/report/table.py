"""Tables for every medium: columns that are declared once, and the values of cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, TypeVar

import msgspec

from tunegate.artifacts.measurements import Interval
from tunegate.artifacts.verdicts import Status
from tunegate.report.units import difference_ms
from tunegate.report.units import share as share_words

TableRow = TypeVar("TableRow")


class Identifier(msgspec.Struct, frozen=True):
    """A name that somebody gave: drawn as code."""

    text: str


class StatusWord(msgspec.Struct, frozen=True):
    """A verdict in one word, with its colour or mark."""

    status: Status


class ChangeInterval(msgspec.Struct, frozen=True):
    """The center of an interval, and its bounds if there is room."""

    interval: Interval | None


class SignedTime(msgspec.Struct, frozen=True):
    """A signed time; slower and faster have colours. `share` is its part of everything that moved
    the same way."""

    milliseconds: float
    share: float | None = None

    @property
    def text(self) -> str:
        """The time with its sign, and the share if known."""
        share = "" if self.share is None else f" ({share_words(self.share)})"
        return f"{difference_ms(self.milliseconds)}{share}"


CellContent = str | Identifier | StatusWord | ChangeInterval | SignedTime
"""Each medium escapes a text, except a number with its unit, which is ours."""


class Column(msgspec.Struct, Generic[TableRow], frozen=True, kw_only=True):
    """`under` names the column that this one is below if a row has two lines. A `wide` column has a
    line of its own on a narrow page; a `why` column is a sentence."""

    title: str
    cell: Callable[[TableRow], CellContent]
    is_number: bool = False
    under: str = ""
    layout: Literal["", "wide", "why"] = ""


class ReportTable(msgspec.Struct, frozen=True):
    """Columns of one kind of row, with the rows."""

    columns: tuple[Column[Any], ...]
    rows: Sequence[Any]

    def without(self, *titles: str) -> ReportTable:
        """Returns the table for a medium without room for these columns."""
        columns = tuple(column for column in self.columns if column.title not in titles)
        return ReportTable(columns, self.rows)

    def cells(self) -> list[list[CellContent]]:
        """Returns the cells of every row, in column order."""
        return [[column.cell(row) for column in self.columns] for row in self.rows]


def text_column(title: str, cell: Callable[[TableRow], CellContent]) -> Column[TableRow]:
    """Returns a column of words."""
    return Column(title=title, cell=cell)


def number_column(title: str, cell: Callable[[TableRow], CellContent]) -> Column[TableRow]:
    """Returns a column of numbers with their units."""
    return Column(title=title, cell=cell, is_number=True)
