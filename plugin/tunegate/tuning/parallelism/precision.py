"""The error of a batch's times whose candidates were measured beside each other.

Source: DOPpler (Borowiec et al., IEEE TPDS 34(7), 2023), equations 3 to 5, with the constants of
the authors' code: a sample and the outliers are measured again alone, and what they show is applied
to the others.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence

SAMPLE_SHARE = 0.2
MIN_TO_CHECK = 3
"""Good results of a batch below which nothing is sampled."""
OUTLIER_SCORE = 3.0
MAX_CORRECTED = 0.25
"""An error from which on the times are not corrected: they say too little."""
_NORMAL = 0.6745
"""The median absolute deviation of a normal distribution, in standard deviations."""


def outliers(values: Sequence[float]) -> tuple[int, ...]:
    """Places of values that are far from the median, by the deviations of their own side of it
    (double MAD)."""
    if not values:
        return ()
    middle = statistics.median(values)
    below = _deviation([middle - v for v in values if v <= middle])
    above = _deviation([v - middle for v in values if v >= middle])
    return tuple(
        place
        for place, value in enumerate(values)
        if _NORMAL * abs(value - middle) > OUTLIER_SCORE * (below if value < middle else above)
    )


def checked(shares: Sequence[float], rng: random.Random) -> tuple[int, ...]:
    """Places of the good results of one batch that are measured again alone: the outliers, and as
    many others as make a fifth. A share is of a candidate's time on the device in the time that its
    measurement took."""
    if len(shares) < MIN_TO_CHECK:
        return ()
    odd = outliers(shares)
    wanted = max(len(odd), math.ceil(SAMPLE_SHARE * len(shares)))
    others = [place for place in range(len(shares)) if place not in odd]
    return tuple(sorted([*odd, *rng.sample(others, wanted - len(odd))]))


def error(together_ms: Mapping[int, float], alone_ms: Mapping[int, float]) -> float | None:
    """Mean relative error of what was measured both ways; None of fewer than two."""
    deltas = [
        abs(together_ms[place] - alone) / together_ms[place]
        for place, alone in alone_ms.items()
        if together_ms[place] > 0
    ]
    return statistics.fmean(deltas) if len(deltas) > 1 else None


def correction(error_of_batch: float | None) -> float:
    """Returns the factor for the times of the others."""
    if error_of_batch is None or error_of_batch >= MAX_CORRECTED:
        return 1.0
    return 1.0 - error_of_batch


def _deviation(distances: Sequence[float]) -> float:
    return statistics.median(distances) if distances else 0.0
