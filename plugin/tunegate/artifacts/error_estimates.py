"""How far builds in other numbers than float32 are from float32."""

from __future__ import annotations

from typing import Literal

import msgspec

What = Literal["max-error", "min-agreement"]
"""The part of a budget, as the configuration calls it."""


class ErrorEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """How far a build in other numbers is from float32, in percent: of `samples` inputs, with the
    95% bounds of what all inputs like them have. `limit` is the budget, None where nobody said it;
    `output` the one that is off the most, '' where none is. `saturated` are outputs that are
    exactly 0 or 1, or always the same: they cannot show an error.
    `high` is None where the samples are too few for a bound."""

    what: What
    center: float
    low: float
    high: float | None
    samples: int
    saturated: tuple[str, ...] = ()
    limit: float | None = None
    output: str = ""


class SideError(msgspec.Struct, frozen=True, kw_only=True):
    """What ships of one side: `title` is what people call the candidate. `estimates` has one for
    each part of the budget; none where it computes in float32."""

    title: str
    estimates: tuple[ErrorEstimate, ...] = ()


class ShippedErrors(msgspec.Struct, frozen=True, kw_only=True):
    """The errors of what ships, under a budget of accuracy; None for a side that ships nothing.
    `moved` are the parts of the budget by which the head is clearly less exact than the base, and
    not clearly faster."""

    base: SideError | None = None
    head: SideError | None = None
    moved: tuple[What, ...] = ()
