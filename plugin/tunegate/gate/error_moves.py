"""The check whether a head is less exact than its base, by the intervals of both. Pure.

Each bound holds with 95% confidence, so two intervals that are apart by noise alone come in less
than one of ten cases for each part of a budget, and far less where both are wide.
"""

from __future__ import annotations

from typing import NamedTuple

from tunegate.artifacts.error_estimates import ErrorEstimate, SideError, What
from tunegate.artifacts.measurements import Interval

FLOAT32_PERCENT = 0.1
"""The error up to which a build counts as float32."""


class OffPercent(NamedTuple):
    """An error with its bounds, the larger the worse, a metric in its own unit; `high` is None
    where there is none."""

    low: float
    high: float | None


def moved_errors(
    base: SideError | None, head: SideError | None, change: Interval | None
) -> tuple[What, ...]:
    """The parts of the budget whose error is clearly larger in the head, where its latency does not
    pay for it: an interval of the change that is below zero does."""
    is_faster = change is not None and change.high < 0
    if base is None or head is None or is_faster:
        return ()
    before = {each.what: each for each in base.estimates}
    return tuple(
        each.what
        for each in head.estimates
        if is_larger(_off(before.get(each.what), each.what), _off(each, each.what))
    )


def is_larger(before: OffPercent, after: OffPercent) -> bool:
    """Returns whether the least possible value after is above the largest possible one before."""
    return before.high is not None and after.low > before.high


def _off(estimate: ErrorEstimate | None, what: What) -> OffPercent:
    """Returns the error of a side in percent; a side without an estimate is float32, and a metric
    then unknown."""
    exact = {"max-error": FLOAT32_PERCENT, "min-agreement": 0.0}.get(what)
    if estimate is None or not estimate.samples:
        return OffPercent(0.0, exact if estimate is None else None)
    if what != "min-agreement":
        high = estimate.high
        return OffPercent(estimate.low, None if high is None else max(high, exact or 0.0))
    least = 0.0 if estimate.high is None else 100 - estimate.high
    return OffPercent(least, 100 - estimate.low)
