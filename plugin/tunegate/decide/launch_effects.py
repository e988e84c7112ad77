"""The effect of a launch, from its block pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
