"""The effect of a waiver on a proven slowdown: it passes below the ceiling, until it expires."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.measurements import Interval
from tunegate.artifacts.waivers import WAIVERS_FILE, Waiver, waiver_of

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


def notes(
    waivers: Sequence[Waiver], used: Mapping[Cell, bool], today: datetime.date
) -> Iterator[str]:
    """Notes on waivers of the file that have expired, and on those that this run did not need.
    `used` has the cells that were judged; False is one that passes without its waiver."""
    covered = {cell: waiver_of(waivers, cell) for cell in used}
    for waiver in waivers:
        of_waiver = [used[cell] for cell, found in covered.items() if found == waiver]
        where = f"the waiver of {waiver.model} on {waiver.target}"
        if waiver.expires < today and not any(of_waiver):
            yield f"{where} expired on {waiver.expires}: {WAIVERS_FILE} still has it"
        elif of_waiver and not any(of_waiver):
            yield (
                f"{where} is not needed by this change. {WAIVERS_FILE} has it until "
                f"{waiver.expires}, or until somebody removes it ({waiver.issue})"
            )
