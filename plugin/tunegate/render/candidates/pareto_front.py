"""The candidates that no other beats in both time and error. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tunegate.artifacts.error_estimates import ErrorEstimate
from tunegate.artifacts.verdicts import CandidateOutcome


class ErrorPercent(msgspec.Struct, frozen=True):
    """The error of the sample, with its bounds; `high` is None where there is none. 0 for
    float32."""

    center: float = 0.0
    low: float = 0.0
    high: float | None = 0.0


def error_percent(estimate: ErrorEstimate | None) -> ErrorPercent:
    """The share of the largest output, or of the samples whose largest output is another one."""
    if estimate is None:
        return ErrorPercent()
    if estimate.what == "max-error":
        return ErrorPercent(estimate.center, estimate.low, estimate.high)
    low = None if estimate.high is None else 100 - estimate.high
    return ErrorPercent(100 - estimate.center, low or 0.0, 100 - estimate.low)


def pareto_front(outcomes: Sequence[CandidateOutcome]) -> tuple[CandidateOutcome, ...]:
    """Returns the measured candidates that are faster than all that are as exact, the fastest
    first. One whose error nothing tells is not among them."""
    measured = [
        (each.ms, error_percent(each.error).center, each)
        for each in outcomes
        if each.ms is not None and not each.has_unknown_error
    ]
    ranked = sorted(measured, key=lambda each: each[:2])
    front: list[CandidateOutcome] = []
    best = float("inf")
    for _, error, outcome in ranked:
        if error < best:
            front.append(outcome)
            best = error
    return tuple(front)
