"""Differences of cells that were measured several times, with intervals.

Each cell has its own variance, so degrees of freedom are Welch's and Satterthwaite's
(Satterthwaite, Biometrics Bulletin 2, 1946).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec

from tunegate.artifacts.measurements import Interval
from tunegate.decide.distributions import t_probability, t_quantile

FAMILY_ERROR = 0.05
"""The probability that any interval of a family misses."""
_FEWEST = 2
_LEAST_VARIANCE = 1e-8
"""Equal launches are luck: no cell is known better than to a hundredth of a percent."""


class Sample(msgspec.Struct, frozen=True):
    """The logarithm of a time: its mean over launches, and the variance of that mean."""

    mean: float
    variance: float
    launches: int


def sample_of(values: Sequence[float]) -> Sample | None:
    """Returns the sample, None for fewer than two launches, whose scatter is unknown."""
    if len(values) < _FEWEST:
        return None
    variance = max(_LEAST_VARIANCE, statistics.variance(values) / len(values))
    return Sample(statistics.fmean(values), variance, len(values))


class Contrast(msgspec.Struct, frozen=True):
    """A weighted sum of the logarithms of times, with its standard error."""

    center: float
    error: float
    freedom: int

    @property
    def p_value(self) -> float:
        """Returns the probability of a difference this large, either way, if there is none."""
        return 2 * t_probability(self.freedom, -abs(self.center) / self.error)

    def percent(self, family: int = 1) -> Interval:
        """Returns the interval of a ratio as a change in percent, if `family` are tested together
        (Bonferroni's inequality)."""
        wide = self.error * t_quantile(self.freedom, 1 - FAMILY_ERROR / (2 * family))
        low, center, high = (
            _percent(each) for each in (self.center - wide, self.center, self.center + wide)
        )
        return Interval(low=low, center=center, high=high)


def contrast(weights: Sequence[float], samples: Sequence[Sample]) -> Contrast:
    """Returns the sum of the samples by these weights, some of which are not 0."""
    parts = [
        (weight, sample)
        for weight, sample in zip(weights, samples, strict=True)
        if abs(weight) > 1e-12  # noqa: PLR2004 -- what a fit leaves of zero
    ]
    variances = [weight**2 * sample.variance for weight, sample in parts]
    total = math.fsum(variances)
    freedom = total**2 / math.fsum(
        variance**2 / (sample.launches - 1)
        for variance, (_, sample) in zip(variances, parts, strict=True)
    )
    center = math.fsum(weight * sample.mean for weight, sample in parts)
    return Contrast(center, math.sqrt(total), max(1, int(freedom)))


def holm_p_values(p_values: Sequence[float]) -> list[float]:
    """Returns Holm's p-values (Scandinavian Journal of Statistics 6, 1979): those below `ERROR` are
    clear, however many were tested."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    found, highest = [0.0] * len(p_values), 0.0
    for done, place in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - done) * p_values[place]))
        found[place] = highest
    return found


def _percent(logarithm: float) -> float:
    """Returns at most a number that JSON can hold: an interval of few launches may be unbounded."""
    return 100 * math.expm1(min(logarithm, 50.0))
