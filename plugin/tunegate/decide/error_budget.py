"""The error of a build in numbers other than float32, as an interval, and its budget.

The inputs are samples. Agreement has Clopper-Pearson bounds. The error, or the user's metric, that
95% of inputs do not exceed has distribution-free bounds from order statistics (David & Nagaraja,
Order Statistics, 7.1). Each bound alone holds with 95% confidence.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeGuard

import msgspec

from tunegate.artifacts import builds
from tunegate.artifacts.measurements import Comparison, Interval
from tunegate.config import Accuracy, AccuracyConfig
from tunegate.decide.distributions import inferences_needed, lower_share, upper_share

COVERED_PERCENT = 95.0
"""`max-error` and a metric bound this share of the inputs."""


def samples_needed(budget: AccuracyConfig) -> int:
    """Returns the fewest inputs that can prove a build inside its budget, plus a quarter."""
    return math.ceil(1.25 * fewest_samples(budget))


def fewest_samples(budget: AccuracyConfig) -> int:
    """Returns the number of inputs that proves it if none is outside."""
    is_covered = budget.max_error is not None or budget.metric_command is not None
    shares = [COVERED_PERCENT] if is_covered else []
    if budget.min_agreement is not None:
        shares.append(budget.min_agreement)
    return max(map(inferences_needed, shares))


def limits_of(accuracy: Accuracy) -> tuple[builds.ErrorLimit, ...]:
    """Returns the parts of a budget, none if the numbers must be the same."""
    if accuracy == "same":
        return ()
    metric = accuracy.metric_command
    parts: tuple[tuple[builds.What, float | None], ...] = (
        ("max-error", accuracy.max_error),
        ("min-agreement", accuracy.min_agreement),
        ("metric", metric.at_most if metric is not None else None),
    )
    return tuple(
        builds.ErrorLimit(what=what, limit=limit) for what, limit in parts if limit is not None
    )


def estimate_errors(
    errors: builds.SampledErrors, budget: AccuracyConfig
) -> tuple[builds.ErrorEstimate, ...]:
    """Returns an estimate for each part of the budget. A metric alone comes with the largest error,
    without a limit: plots show it on an axis."""
    return tuple(_estimates(errors, budget))


def _estimates(
    errors: builds.SampledErrors, budget: AccuracyConfig
) -> Iterator[builds.ErrorEstimate]:
    metric = budget.metric_command
    if budget.max_error is not None or budget.min_agreement is None:
        yield _estimate_part(_max_error(errors), budget.max_error, errors.largest_of, errors)
    if budget.min_agreement is not None:
        yield _estimate_part(_agreement(errors), budget.min_agreement, errors.disagrees, errors)
    if metric is not None:
        yield _estimate_part(_metric(errors), metric.at_most, "", errors)


def _estimate_part(
    estimate: builds.ErrorEstimate, limit: float | None, output: str, errors: builds.SampledErrors
) -> builds.ErrorEstimate:
    return msgspec.structs.replace(
        estimate,
        limit=limit,
        output=output,
        silent=max(0, errors.inputs - estimate.samples),
        mostly_saturated=errors.mostly_saturated,
    )


def outside(estimates: Sequence[builds.ErrorEstimate]) -> str:
    """Returns why a build is outside its budget, '' if it is inside."""
    for estimate in estimates:
        problem = "" if estimate.limit is None else _outside(estimate, estimate.limit)
        if problem:
            return problem
    return ""


def _outside(estimate: builds.ErrorEstimate, limit: float) -> str:
    if not estimate.samples:
        return f"has no output that tells its {estimate.what}{_uninformative_inputs(estimate)}"
    if estimate.what == "min-agreement":
        is_inside = estimate.low >= limit
    else:
        is_inside = estimate.high is not None and estimate.high <= limit
    if is_inside:
        return ""
    low, high = (_bound_text(bound, estimate.unit) for bound in (estimate.low, estimate.high))
    inputs = "input" if estimate.samples == 1 else "inputs"
    silent = f" ({estimate.silent} more tell nothing)" if estimate.silent else ""
    return (
        f"has a {estimate.what} of {estimate.center:.3g}{estimate.unit}, interval {low} to {high} "
        f"on {estimate.samples} {inputs}{silent}; the budget is {limit:g}{estimate.unit}"
    )


def _uninformative_inputs(estimate: builds.ErrorEstimate) -> str:
    outputs = ", ".join(estimate.saturated)
    if not outputs:
        return ""
    if estimate.what != "min-agreement":
        return f": {outputs} cannot show one"
    return (
        f": whatever the input, the largest value of {outputs} is in one place. "
        "Give inputs with other answers as cases"
    )


def _bound_text(value: float | None, unit: str) -> str:
    return "any" if value is None else f"{value:.3g}{unit}"


def _max_error(errors: builds.SampledErrors) -> builds.ErrorEstimate:
    return _exceeded_by_few("max-error", [100 * each for each in errors.relative], errors)


def _metric(errors: builds.SampledErrors) -> builds.ErrorEstimate:
    """Returns the estimate of the scores, over the inputs that carry information."""
    numbers = [number for number in errors.telling if number < len(errors.scores)]
    return _exceeded_by_few("metric", [errors.scores[number] for number in numbers], errors)


def _exceeded_by_few(
    what: builds.What, values: Sequence[float], errors: builds.SampledErrors
) -> builds.ErrorEstimate:
    ascending = sorted(values)
    count = len(ascending)
    if not count:
        return _estimate_nothing(what, errors)
    is_enough = inferences_needed(COVERED_PERCENT) <= count
    return builds.ErrorEstimate(
        what=what,
        center=ascending[math.ceil(count * COVERED_PERCENT / 100) - 1],
        low=ascending[_low_rank(count)],
        high=ascending[-1] if is_enough else None,
        samples=count,
        saturated=errors.saturated,
    )


def _low_rank(count: int) -> int:
    """Returns the index of the largest order statistic that does not exceed the wanted error
    quantile with 95% confidence."""
    share = 1 - COVERED_PERCENT / 100
    ranks = (rank for rank in range(count) if lower_share(count - rank, count) > share)
    return max(ranks, default=0)


def _agreement(errors: builds.SampledErrors) -> builds.ErrorEstimate:
    count = len(errors.agrees)
    silent = errors.saturated + errors.one_place
    if not count:
        return msgspec.structs.replace(_estimate_nothing("min-agreement", errors), saturated=silent)
    wrong = count - sum(errors.agrees)
    return builds.ErrorEstimate(
        what="min-agreement",
        center=100 * (count - wrong) / count,
        low=100 * (1 - upper_share(wrong, count)),
        high=100 * (1 - lower_share(wrong, count)),
        samples=count,
        saturated=silent,
    )


def _estimate_nothing(what: builds.What, errors: builds.SampledErrors) -> builds.ErrorEstimate:
    return builds.ErrorEstimate(
        what=what,
        center=0.0,
        low=0.0,
        high=None,
        samples=0,
        saturated=errors.saturated,
    )


# Tests whether a head is less exact than its base, by both intervals. Each bound holds with 95%
# confidence, so noise alone separates two intervals in fewer than one of ten cases for each part of
# a budget, and in far fewer if both are wide.

FLOAT32_PERCENT = 0.1
"""Builds up to this error count as float32."""


class OffPercent(NamedTuple):
    """An error with its bounds, larger is worse. A metric keeps its own unit. `high` is None
    without an upper bound."""

    low: float
    high: float | None


def moved_errors(
    base: builds.SideError | None, head: builds.SideError | None, change: Interval | None
) -> tuple[builds.What, ...]:
    """Returns the parts of the budget whose error is clearly larger in the head, unless the head is
    faster: an interval of the change below zero pays for the error."""
    is_faster = change is not None and change.high < 0
    if base is None or head is None or is_faster:
        return ()
    before = {estimate.what: estimate for estimate in base.estimates}
    return tuple(
        estimate.what
        for estimate in head.estimates
        if is_larger(_off(before.get(estimate.what), estimate.what), _off(estimate, estimate.what))
    )


def is_larger(before: OffPercent, after: OffPercent) -> bool:
    """Returns whether the smallest possible value after lies above the largest possible one
    before."""
    return before.high is not None and after.low > before.high


def _off(estimate: builds.ErrorEstimate | None, what: builds.What) -> OffPercent:
    """Returns the error of a side in percent. A side without an estimate is float32; its metric is
    unknown."""
    exact = {"max-error": FLOAT32_PERCENT, "min-agreement": 0.0}.get(what)
    if estimate is None or not estimate.samples:
        return OffPercent(0.0, exact if estimate is None else None)
    if what != "min-agreement":
        high = estimate.high
        return OffPercent(estimate.low, None if high is None else max(high, exact or 0.0))
    least = 0.0 if estimate.high is None else 100 - estimate.high
    return OffPercent(least, 100 - estimate.low)


# The errors of what ships of a cell, under its budget of accuracy.


def shipped_errors(
    cell_builds: builds.CellBuilds | None, comparison: Comparison | None = None
) -> builds.ShippedErrors | None:
    """Returns the errors of both sides, None for a model that must compute float32 or of which
    nothing ships."""
    sides = (cell_builds.base, cell_builds.head) if cell_builds is not None else ()
    limits = next((side.limits for side in sides[::-1] if _ships_under_budget(side)), ())
    if not limits:
        return None
    base, head = map(_side_error, sides)
    change = comparison.change_percent if comparison is not None else None
    return builds.ShippedErrors(
        base=base, head=head, moved=moved_errors(base, head, change), limits=limits
    )


def _ships_under_budget(side: builds.Build | None) -> TypeGuard[builds.Build]:
    return side is not None and bool(side.limits) and side.error is None


def _side_error(build: builds.Build | None) -> builds.SideError | None:
    if build is None or build.error is not None:
        return None
    return builds.SideError(title=build.title, estimates=build.error_estimate)
