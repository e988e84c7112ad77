"""The three-way decision over launch effects.

The unit of replication is the launch, a pair of fresh processes (Kalibera & Jones, ISMM 2013):
effects of memory layout last as long as a process, so more blocks do not average them out. Bounds
are one-sided Student-t bounds whose error is split evenly over the planned analyses. P(fail | true
<= margin) <= 1% and P(pass | true >= margin) <= 5% hold for any number of analyses used. The error
of a fail is split again between the median and the tests of `inside_launch`. A pass needs every
test, so its error is not split.
"""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from tunegate.artifacts.measurements import Interval
from tunegate.decide.distributions import t_probability, t_quantile

FAIL_ERROR = 0.00775
"""The error of the median. FAIL_ERROR, twice MEAN_FAIL_ERROR (the mean with and without stalls),
twice TAIL_FAIL_ERROR,
FIRST_FAIL_ERROR and stalls.FAIL_ERROR add up to 1%."""
MEAN_FAIL_ERROR, TAIL_FAIL_ERROR, FIRST_FAIL_ERROR = 0.0005, 0.00025, 0.00025
PASS_ERROR = 0.05
MIN_SPREAD = 0.0002
"""The smallest spread that is believed. Below 0.02% the spread of a few launches is luck."""
EXPLAINED = 0.5
"""Changes from this share of the margin on are explained; smaller ones are not."""
_POWER_QUANTILE = 0.84

CellDecision = Literal["fail", "pass", "undecided"]


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of ln(head / base). `low` decides FAIL, `high` decides PASS."""

    low: float
    center: float
    high: float
    spread: float


def bounds(
    effects: Sequence[float], *, analyses: int, cells: int, fail_error: float = FAIL_ERROR
) -> Bounds:
    """Returns the bounds after these launches, of `analyses` planned ones, with `cells` cells gated
    together.

    One wrong fail of any cell blocks a merge, so the error of FAIL is divided by `cells` (see
    `shares`). PASS needs every cell to pass, so its error is not.
    """
    alone = share_alone(len(effects))
    errors = (fail_error / (analyses * cells), PASS_ERROR / analyses)
    by_launch = _bounds(effects, *(alone * error for error in errors))
    if alone == 1.0:
        return by_launch
    by_batch = _bounds(batch_means(effects), *((1 - alone) * error for error in errors))
    return msgspec.structs.replace(
        by_launch, low=max(by_launch.low, by_batch.low), high=min(by_launch.high, by_batch.high)
    )


def spread_of(effects: Sequence[float]) -> float:
    """Returns the standard deviation of two or more effects, at least MIN_SPREAD."""
    return max(float(np.std(effects, ddof=1)), MIN_SPREAD)


def _bounds(effects: Sequence[float], fail_error: float, pass_error: float) -> Bounds:
    count = len(effects)
    center, spread = float(np.mean(effects)), spread_of(effects)
    error = spread / math.sqrt(count)
    return Bounds(
        low=center - _t(fail_error, count) * error,
        center=center,
        high=center + _t(pass_error, count) * error,
        spread=spread,
    )


def decide_cell(interval: Bounds, margin: float) -> CellDecision:
    """Returns the decision on one cell. `margin` is ln(1 + the allowed slowdown)."""
    if interval.low > margin:
        return "fail"
    return "pass" if interval.high < margin else "undecided"


def projected_launches(
    interval: Bounds, margin: float, *, analyses: int, nearer_by: float = 0.0
) -> int | None:
    """Returns the number of launches that would likely decide, or None if the effect lies on the
    margin itself. `nearer_by` is added to the effect's distance from the margin: fewer launches are
    projected, so that nobody gives up too early."""
    distance = abs(margin - interval.center) + nearer_by
    if distance < MIN_SPREAD / 10:
        return None
    quantile = (
        _t(PASS_ERROR / analyses, 30) if interval.center < margin else _t(FAIL_ERROR / analyses, 30)
    )
    return math.ceil(((quantile + _POWER_QUANTILE) * interval.spread / distance) ** 2)


def _t(error: float, count: int) -> float:
    """Upper quantile of Student's t with count - 1 degrees of freedom."""
    return t_quantile(count - 1, 1 - error)


# Bounds of logarithms as changes in percent.

_LARGEST = 10.0
"""The largest logarithm shown. Anything beyond reads as infinite."""


def percent_interval(interval: Bounds) -> Interval:
    """Returns the bounds and the center as changes of the head against the base. The center lies
    between the bounds."""
    center = interval.center
    high = max(center, min(interval.high, _LARGEST))
    low, center, high = (100 * math.expm1(x) for x in (min(interval.low, center), center, high))
    return Interval(low=low, center=center, high=high)


# Several cells gated together: Holm's step-down (Scandinavian Journal of Statistics 6, 1979). FAIL
# shares its error between the cells. The cell with the smallest p-value is judged with the error
# divided by the number of cells, the next with the error divided by the others, and so on until one
# does not fail.


def p_value(effects: Sequence[float], *, margin: float, analyses: int) -> float:
    """Returns the p-value of one cell: an upper bound on the probability of effects this slow if
    the true change is at most `margin`, at whichever analysis the cell stopped. Needs two or more
    launches."""
    alone = share_alone(len(effects))
    chance = _tail_probability(effects, margin) / alone
    if alone < 1.0:
        chance = min(chance, _tail_probability(batch_means(effects), margin) / (1 - alone))
    return min(1.0, analyses * chance)


def _tail_probability(effects: Sequence[float], margin: float) -> float:
    distance = (margin - float(np.mean(effects))) * math.sqrt(len(effects)) / spread_of(effects)
    return t_probability(len(effects) - 1, distance)


def shares(p_values: Sequence[float]) -> tuple[int, ...]:
    """Returns, for each cell, the number of parts that the error is split into: the `cells` of
    `bounds`."""
    parts = [0] * len(p_values)
    remaining = len(p_values)
    for cell in sorted(range(len(p_values)), key=lambda cell: p_values[cell]):
        parts[cell] = remaining
        if p_values[cell] <= FAIL_ERROR / remaining:
            remaining -= 1
    return tuple(parts)


# The effect of a launch, from its block pairs.

_NORMAL, _EFFICIENCY = 1.4826, 1.023


def hodges_lehmann(differences: Sequence[float]) -> float:
    """Returns the median of all pairwise means, each value with itself included (Hodges & Lehmann
    1963). It is nearly as efficient as the mean, and a few disturbed blocks hardly move it."""
    values = np.asarray(differences, dtype=float)
    sums = values[:, None] + values[None, :]
    return float(np.median(sums[np.triu_indices(len(values))]) / 2)


def launch_effect(base_ms: Sequence[float], head_ms: Sequence[float]) -> float:
    """Returns the effect ln(head / base) of one launch. Each value is the median, or the mean, of
    one block."""
    return hodges_lehmann(list(np.log(np.asarray(head_ms)) - np.log(np.asarray(base_ms))))


def launch_noise(base_ms: Sequence[float], head_ms: Sequence[float]) -> float:
    """Returns the standard error of a launch's effect: the median absolute deviation of its pairs,
    scaled to a normal distribution and to the efficiency of the Hodges-Lehmann estimate."""
    differences = np.log(np.asarray(head_ms)) - np.log(np.asarray(base_ms))
    deviation = float(np.median(np.abs(differences - np.median(differences))))
    return _NORMAL * _EFFICIENCY * deviation / float(np.sqrt(len(differences)))


def within_spread(base_ms: Sequence[float], head_ms: Sequence[float]) -> float:
    """Returns the standard deviation of the pair differences of one launch."""
    differences = np.log(np.asarray(head_ms)) - np.log(np.asarray(base_ms))
    return float(np.std(differences, ddof=1)) if len(differences) > 1 else 0.0


# Batches of two launches: non-overlapping batch means (Law & Kelton, Simulation Modeling and
# Analysis). An effect that alternates from launch to launch makes the spread of launches wide and
# the spread of batch means small. From FEWEST launches on, a part of the error buys a second pair
# of bounds from batch means, and the tighter bound counts.

FEWEST = 9
"""In launches: four batches."""
SHARE = 0.25
"""The share of the error for batch means, from FEWEST launches on."""
_SIZE = 2


def batch_means(effects: Sequence[float]) -> list[float]:
    """Returns the means of neighbouring launches. With an odd number of launches the first is left
    out."""
    first = len(effects) % _SIZE
    return [
        (a + b) / _SIZE for a, b in zip(effects[first::2], effects[first + 1 :: 2], strict=True)
    ]


def share_alone(launches: int) -> float:
    """Returns the share of the error left for the bounds of the launches themselves."""
    return 1.0 if launches < FEWEST else 1.0 - SHARE
