"""The three-way decision over launch effects.

The launch, a pair of fresh processes, is the unit of replication (Kalibera & Jones, ISMM 2013):
what differs between launches, such as the layout of memory, is not averaged out inside one.
One-sided Student-t bounds, the error split evenly over the planned analyses: P(fail | true <=
margin) <= 1% and P(pass | true >= margin) <= 5%, however many analyses are used. The error of a
fail is split once more, over what may fail: the median, and what gate.inside tests. A pass
needs all of them, and splits nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from tunegate.artifacts.measurements import Interval
from tunegate.decide.distributions import t_probability, t_quantile

FAIL_ERROR = 0.008
"""The error of the median. With twice MEAN_FAIL_ERROR, for the mean without and with stalls, twice
TAIL_FAIL_ERROR, and that of stalls.FAIL_ERROR it is one percent."""
MEAN_FAIL_ERROR, TAIL_FAIL_ERROR = 0.0005, 0.00025
PASS_ERROR = 0.05
MIN_SPREAD = 0.0002
"""The smallest spread that counts: below 0.02% the spread of a few launches is luck."""
EXPLAINED = 0.5
"""The share of the margin from which on a change is explained: a smaller one is not looked into."""
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
    """Bounds after these launches, for `analyses` planned analyses and
    `cells` cells gated together.

    FAIL is corrected for the number of cells (one wrong cell blocks a merge; gate.holm says how
    many there are to share with in the end); PASS needs every cell to pass, so it is not.
    """
    alone = share_alone(len(effects))
    errors = (fail_error / (analyses * cells), PASS_ERROR / analyses)
    found = _bounds(effects, *(alone * error for error in errors))
    if alone == 1.0:
        return found
    batched = _bounds(batch_means(effects), *((1 - alone) * error for error in errors))
    return msgspec.structs.replace(
        found, low=max(found.low, batched.low), high=min(found.high, batched.high)
    )


def spread_of(effects: Sequence[float]) -> float:
    """The standard deviation of two effects or more, not under what is luck."""
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


def decide_cell(found: Bounds, margin: float) -> CellDecision:
    """The decision on one cell. `margin` is ln(1 + the allowed slowdown)."""
    if found.low > margin:
        return "fail"
    return "pass" if found.high < margin else "undecided"


def projected_launches(
    found: Bounds, margin: float, *, analyses: int, nearer_by: float = 0.0
) -> int | None:
    """The number of launches that would likely decide; None where the effect is on the margin
    itself. With `nearer_by` the answer is for an effect that is so much clearer than it looks: who
    gives up should be wrong about it by less than that."""
    distance = abs(margin - found.center) + nearer_by
    if distance < MIN_SPREAD / 10:
        return None
    quantile = (
        _t(PASS_ERROR / analyses, 30) if found.center < margin else _t(FAIL_ERROR / analyses, 30)
    )
    return math.ceil(((quantile + _POWER_QUANTILE) * found.spread / distance) ** 2)


def _t(error: float, count: int) -> float:
    """Upper quantile of Student's t with count - 1 degrees of freedom."""
    return t_quantile(count - 1, 1 - error)


# Bounds of logarithms as changes in percent.

_LARGEST = 10.0
"""The largest logarithm that is shown: what is beyond is endless for anybody."""


def percent_interval(found: Bounds) -> Interval:
    """The bounds and the center as the head shows them against the base."""
    return Interval(
        low=100 * math.expm1(found.low),
        center=100 * math.expm1(found.center),
        high=100 * math.expm1(min(found.high, _LARGEST)),
    )


# Several cells gated together: Holm's step-down (Holm, Scandinavian Journal of Statistics 6,
# 1979). One wrong fail of any cell blocks a merge, so FAIL shares its error between the cells. A
# cell that has failed needs none of it any more: the clearest one is judged with the error split
# over all, the next with it split over the others, until one is not clear enough. PASS needs every
# cell, and is not shared.


def p_value(effects: Sequence[float], *, margin: float, analyses: int) -> float:
    """The p-value of one cell: at most this often launches look so slow where the true change is
    `margin` or less, whichever analysis was the last. Two launches or more."""
    alone = share_alone(len(effects))
    chance = _tail_probability(effects, margin) / alone
    if alone < 1.0:
        chance = min(chance, _tail_probability(batch_means(effects), margin) / (1 - alone))
    return min(1.0, analyses * chance)


def _tail_probability(effects: Sequence[float], margin: float) -> float:
    distance = (margin - float(np.mean(effects))) * math.sqrt(len(effects)) / spread_of(effects)
    return t_probability(len(effects) - 1, distance)


def shares(p_values: Sequence[float]) -> tuple[int, ...]:
    """The number of parts that the error is split into for each cell:
    `cells` of gate.decision.bounds."""
    found = [0] * len(p_values)
    left = len(p_values)
    for cell in sorted(range(len(p_values)), key=lambda cell: p_values[cell]):
        found[cell] = left
        if p_values[cell] <= FAIL_ERROR / left:
            left -= 1
    return tuple(found)


# The effect of a launch, from its block pairs.

_NORMAL, _EFFICIENCY = 1.4826, 1.023


def hodges_lehmann(differences: Sequence[float]) -> float:
    """The median of all pairwise means, a difference with itself included (Hodges & Lehmann 1963):
    nearly as efficient as the mean, and hardly moved by a few disturbed blocks."""
    values = np.asarray(differences, dtype=float)
    sums = values[:, None] + values[None, :]
    return float(np.median(sums[np.triu_indices(len(values))]) / 2)


def launch_effect(base_ms: Sequence[float], head_ms: Sequence[float]) -> float:
    """The effect ln(head / base) of one launch, from the median (or the
    mean) of each block of each pair."""
    return hodges_lehmann(list(np.log(np.asarray(head_ms)) - np.log(np.asarray(base_ms))))


def launch_noise(base_ms: Sequence[float], head_ms: Sequence[float]) -> float:
    """Standard error of a launch's effect, from the scatter of its pairs: the median absolute
    deviation, scaled to a normal distribution, by the efficiency of the Hodges-Lehmann estimate."""
    differences = np.log(np.asarray(head_ms)) - np.log(np.asarray(base_ms))
    deviation = float(np.median(np.abs(differences - np.median(differences))))
    return _NORMAL * _EFFICIENCY * deviation / float(np.sqrt(len(differences)))


def within_spread(base_ms: Sequence[float], head_ms: Sequence[float]) -> float:
    """Standard deviation of the pair differences of one launch."""
    differences = np.log(np.asarray(head_ms)) - np.log(np.asarray(base_ms))
    return float(np.std(differences, ddof=1)) if len(differences) > 1 else 0.0


# Launches in batches of two: non-overlapping batch means (Law & Kelton, Simulation Modeling and
# Analysis). An effect that comes and goes from one launch to the next makes their spread wide, and
# the spread of the means of two neighbours small. Where there are enough launches a part of the
# error buys a second pair of bounds, from these means: whichever bound is the nearer one counts.

FEWEST = 9
"""Launches: four batches."""
SHARE = 0.25
"""The share of the error for batch means, once there are so many launches."""
_SIZE = 2


def batch_means(effects: Sequence[float]) -> list[float]:
    """The batch means of the latest launches; an odd one is the first."""
    first = len(effects) % _SIZE
    return [
        (a + b) / _SIZE for a, b in zip(effects[first::2], effects[first + 1 :: 2], strict=True)
    ]


def share_alone(launches: int) -> float:
    """Returns the share of the error that is left for the bounds of the launches themselves."""
    return 1.0 if launches < FEWEST else 1.0 - SHARE
