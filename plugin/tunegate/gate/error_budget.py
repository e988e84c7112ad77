"""The error of a build in other numbers than float32, as an interval, and its budget.

The inputs are samples. Agreement has Clopper-Pearson bounds. The error that 95% of inputs do not
exceed has distribution-free bounds: order statistics of the sample (David & Nagaraja, Order
Statistics, 7.1). Each bound alone holds with 95% confidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from tunegate.artifacts.error_estimates import ErrorEstimate, SampledErrors, What
from tunegate.config import Accuracy, AccuracyConfig
from tunegate.gate.objective import inferences_needed, lower_share, upper_share

COVERED_PERCENT = 95.0
"""The share of inputs that the error of `max-error` is for."""


def samples_needed(budget: AccuracyConfig) -> int:
    """The fewest inputs that can show that a build is inside its budget, and some to spare."""
    shares = [COVERED_PERCENT] if budget.max_error is not None else []
    if budget.min_agreement is not None:
        shares.append(budget.min_agreement)
    return math.ceil(1.25 * max(map(inferences_needed, shares)))


def estimated(errors: SampledErrors, budget: AccuracyConfig) -> tuple[ErrorEstimate, ...]:
    """Returns an estimate for each part of the budget."""
    found = []
    if budget.max_error is not None:
        found.append(_told(_max_error(errors), budget.max_error, errors.largest_of, errors))
    if budget.min_agreement is not None:
        found.append(_told(_agreement(errors), budget.min_agreement, errors.disagrees, errors))
    return tuple(found)


def _told(
    estimate: ErrorEstimate, limit: float, output: str, errors: SampledErrors
) -> ErrorEstimate:
    return msgspec.structs.replace(
        estimate,
        limit=limit,
        output=output,
        silent=max(0, errors.inputs - estimate.samples),
        mostly_saturated=errors.mostly_saturated,
    )


def outside(estimates: Sequence[ErrorEstimate], accuracy: Accuracy) -> str:
    """Returns why a build is not inside its budget, '' where it is."""
    if accuracy == "same":
        return ""
    for each in estimates:
        limit = accuracy.max_error if each.what == "max-error" else accuracy.min_agreement
        found = "" if limit is None else _outside(each, limit)
        if found:
            return found
    return ""


def _outside(each: ErrorEstimate, limit: float) -> str:
    if not each.samples:
        saturated = f": {', '.join(each.saturated)} cannot show one" if each.saturated else ""
        return f"has no output that tells its {each.what}{saturated}"
    is_error = each.what == "max-error"
    if (each.high is not None and each.high <= limit) if is_error else each.low >= limit:
        return ""
    found = f"{each.center:.3g}%, interval {_bound(each.low)} to {_bound(each.high)}"
    inputs = "input" if each.samples == 1 else "inputs"
    silent = f" ({each.silent} more tell nothing)" if each.silent else ""
    budget = f"the budget is {limit:g}%"
    return f"has a {each.what} of {found} on {each.samples} {inputs}{silent}; {budget}"


def _bound(percent: float | None) -> str:
    return "any" if percent is None else f"{percent:.3g}%"


def _max_error(errors: SampledErrors) -> ErrorEstimate:
    ordered = sorted(errors.relative)
    count = len(ordered)
    if not count:
        return _unknown("max-error", errors)
    is_enough = inferences_needed(COVERED_PERCENT) <= count
    return ErrorEstimate(
        what="max-error",
        center=100 * ordered[math.ceil(count * COVERED_PERCENT / 100) - 1],
        low=100 * ordered[_low_rank(count)],
        high=100 * ordered[-1] if is_enough else None,
        samples=count,
        saturated=errors.saturated,
    )


def _low_rank(count: int) -> int:
    """The place of the largest order statistic that is, with 95% confidence, no more than the error
    that is asked for: at least as many errors would have to be as large as it."""
    allowed = 1 - COVERED_PERCENT / 100
    ranks = (rank for rank in range(count) if lower_share(count - rank, count) > allowed)
    return max(ranks, default=0)


def _agreement(errors: SampledErrors) -> ErrorEstimate:
    count = len(errors.agrees)
    if not count:
        return _unknown("min-agreement", errors)
    wrong = count - sum(errors.agrees)
    return ErrorEstimate(
        what="min-agreement",
        center=100 * (count - wrong) / count,
        low=100 * (1 - upper_share(wrong, count)),
        high=100 * (1 - lower_share(wrong, count)),
        samples=count,
        saturated=errors.saturated,
    )


def _unknown(what: What, errors: SampledErrors) -> ErrorEstimate:
    return ErrorEstimate(
        what=what,
        center=0.0,
        low=0.0,
        high=None,
        samples=0,
        saturated=errors.saturated,
    )
