"""Errors of builds in lower precision against float32: on each input, and bounds for all inputs
like them."""

from __future__ import annotations

from typing import Literal

import msgspec

What = Literal["max-error", "min-agreement", "metric"]
"""The part of a budget, as the configuration calls it; a metric is the user's own."""


class SaturatedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """An output that is at a bound, such as 0 or 1, in `percent` of its elements: these show no
    error."""

    output: str
    percent: float


class SampledErrors(msgspec.Struct, frozen=True, kw_only=True):
    """The errors on each of the `inputs` that carry information: the largest error of its outputs
    `relative` to the largest magnitude of the output, and whether the largest value is in the same
    place. `saturated` are outputs that never tell one, `mostly_saturated` those that tell it in
    less than half of their elements. `one_place` are those that vary, and have their largest value
    in the same place on every input. `largest_of` is the output with the largest error, `disagrees`
    the one whose largest value moves most often; '' where none does. `telling` are the numbers of
    these inputs among all that were run, and `scores` what a command of the user's said of all of
    them, in that order."""

    relative: tuple[float, ...] = ()
    agrees: tuple[bool, ...] = ()
    saturated: tuple[str, ...] = ()
    one_place: tuple[str, ...] = ()
    largest_of: str = ""
    disagrees: str = ""
    inputs: int = 0
    mostly_saturated: tuple[SaturatedOutput, ...] = ()
    telling: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()


class ErrorLimit(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a budget, in percent, or in the unit of a metric."""

    what: What
    limit: float

    @property
    def unit(self) -> str:
        return _unit(self.what)


class ErrorEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The error of a build against float32, in percent or in the unit of a metric, over `samples`
    inputs, with 95% bounds for all inputs like them. `limit` is the budget, None where nobody said
    it; `output` the one that is off the most, '' where none is. `saturated` are outputs that are at
    their bounds, such as 0 and 1, or always the same: they show no error. Those of a min-agreement
    have their largest value in the same place on every input, too. `mostly_saturated` are at them
    in most elements; `silent` are inputs that tell nothing, beside the samples. `high` is None
    where the samples are too few for a bound."""

    what: What
    center: float
    low: float
    high: float | None
    samples: int
    saturated: tuple[str, ...] = ()
    limit: float | None = None
    output: str = ""
    silent: int = 0
    mostly_saturated: tuple[SaturatedOutput, ...] = ()

    @property
    def unit(self) -> str:
        return _unit(self.what)


class SideError(msgspec.Struct, frozen=True, kw_only=True):
    """The error of the build that ships on one side: `title` is its candidate's name in reports.
    `estimates` has one for each part of the budget; none where it computes in float32."""

    title: str
    estimates: tuple[ErrorEstimate, ...] = ()


class ShippedErrors(msgspec.Struct, frozen=True, kw_only=True):
    """The errors of what ships, under a budget of accuracy; None for a side that ships nothing.
    `moved` are the parts of the budget by which the head is clearly less exact than the base, and
    not clearly faster. `limits` is the budget, of float32 too, which is always inside."""

    base: SideError | None = None
    head: SideError | None = None
    moved: tuple[What, ...] = ()
    limits: tuple[ErrorLimit, ...] = ()


def _unit(what: What) -> str:
    return "" if what == "metric" else "%"
