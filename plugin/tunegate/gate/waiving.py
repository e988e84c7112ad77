"""What a waiver does to a proven slowdown: it is let pass below the ceiling, until it expires."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.measurements import Interval
from tunegate.artifacts.waivers import Waiver

Standing = Literal["none", "covers", "exceeded", "expired"]


def standing(waiver: Waiver | None, change: Interval | None, today: datetime.date) -> Standing:
    """`covers` only where the whole interval lies below the ceiling."""
    if waiver is None:
        return "none"
    if waiver.expires < today:
        return "expired"
    if change is None or not change.high < waiver.ceiling_percent:
        return "exceeded"
    return "covers"


def waiver_of(waivers: Sequence[Waiver], cell: Cell) -> Waiver | None:
    """The waiver of a cell, by its exact model and target."""
    return next((each for each in waivers if each.cell == cell), None)


def notes(
    waivers: Sequence[Waiver], used: Mapping[Cell, bool], today: datetime.date
) -> Iterator[str]:
    """Notes on waivers that have expired, and on those that this run did not need; `used`
    has the cells that were judged."""
    for waiver in waivers:
        where = f"the waiver of {waiver.model} on {waiver.target}"
        if waiver.expires < today:
            yield f"{where} expired on {waiver.expires}: remove it ({waiver.issue})"
        elif waiver.cell in used and not used[waiver.cell]:
            yield f"{where} is not needed any more: remove it ({waiver.issue})"
