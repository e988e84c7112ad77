"""The loss by a cost model's choice: the best time among what it picks, over the best of all that
was measured."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_DRAWS = 300
_BOOTSTRAPS = 1000


class Spread(NamedTuple):
    """A median over tasks, the 95% interval of that median by bootstrap, and the geometric mean."""

    median: float
    low: float
    high: float
    mean: float


def regret(scores: np.ndarray, milliseconds: np.ndarray, count: int) -> float:
    """The best time among the `count` highest scores, over the best of all; 1 is no regret."""
    first = np.argsort(-scores, kind="stable")[:count]
    return float(milliseconds[first].min() / milliseconds.min())


def random_regret(milliseconds: np.ndarray, count: int) -> float:
    """Returns the loss by as many random picks, as a geometric mean over draws."""
    rng = np.random.default_rng(0)
    drawn = [regret(rng.random(len(milliseconds)), milliseconds, count) for _ in range(_DRAWS)]
    return float(np.exp(np.mean(np.log(drawn))))


def spread(regrets: np.ndarray) -> Spread:
    rng = np.random.default_rng(0)
    drawn = rng.choice(regrets, (_BOOTSTRAPS, len(regrets)))
    low, high = np.percentile(np.median(drawn, axis=1), (2.5, 97.5))
    mean = np.exp(np.mean(np.log(regrets)))
    return Spread(float(np.median(regrets)), float(low), float(high), float(mean))
