"""One number for many."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np


def geometric(values: Sequence[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


class Paired(NamedTuple):
    """The medians of two things that were timed in turn, and of their ratios."""

    first: float
    second: float
    ratio: float


def paired(both: Iterable[Callable[[], float]], rounds: int) -> Paired:
    """Times two things in turn, so that a machine that changes its speed does so to both."""
    first, second = both
    pairs = [(first(), second()) for _ in range(rounds)]
    firsts, seconds = zip(*pairs, strict=True)
    ratio = statistics.median(a / b for a, b in pairs)
    return Paired(statistics.median(firsts), statistics.median(seconds), ratio)
