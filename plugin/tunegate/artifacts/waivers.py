"""Slowdowns that somebody has agreed to, for a while."""

from __future__ import annotations

import datetime

import msgspec

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.changes import ModelPath


class Waiver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """One cell may be slower, up to `ceiling_percent` and through the day `expires`."""

    model: ModelPath
    target: str
    ceiling_percent: float
    expires: datetime.date
    issue: str
    reason: str

    @property
    def cell(self) -> Cell:
        return Cell(model=self.model, target=self.target)
