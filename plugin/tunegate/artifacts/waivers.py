"""Slowdowns that somebody has agreed to, for a while."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Literal

import msgspec

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.model_names import path_of

WAIVERS_FILE = "tunegate-waivers.yaml"


class Waiver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """A waiver: one cell may be slower, up to `ceiling_percent` and through the day `expires`. A
    model's path stands for all of its profiles."""

    model: ModelPath
    target: str
    ceiling_percent: float
    expires: datetime.date
    issue: str
    reason: str

    @property
    def cell(self) -> Cell:
        return Cell(model=self.model, target=self.target)


ISSUE_TO_WRITE = "<the address of the issue>"
REASON_TO_WRITE = "<why this slowdown is accepted>"
"""Placeholders for the issue and the reason of an offered waiver: a file that still has them is
refused."""


class WaiverOffer(msgspec.Struct, frozen=True, kw_only=True):
    """Waivers that would let a red verdict pass, but for the issue and reason of new ones: these
    are for the people who agree. The file has one for the cells that are `filed` already, which is
    to be changed; it `has_wider` where a whole model has an entry, and a profile of it has none. A
    file that `is_unread` may have any. `counts_from` says whose file counts."""

    waivers: tuple[Waiver, ...]
    counts_from: Literal["base", "head"]
    filed: tuple[Cell, ...] = ()
    is_unread: bool = False
    has_wider: bool = False


def waiver_of(waivers: Sequence[Waiver], cell: Cell) -> Waiver | None:
    """The waiver of a cell: its own, or else that of the model which it is a profile of."""
    by_cell = {waiver.cell: waiver for waiver in waivers}
    whole = msgspec.structs.replace(cell, model=path_of(cell.model))
    return by_cell.get(cell) or by_cell.get(whole)
