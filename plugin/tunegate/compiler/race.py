"""Which of two ways to compute the same is faster here and now: both in turn, for a moment."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

_SECONDS = 0.5
_FEWEST, _MOST = 5, 100
_ROUND_SECONDS = 0.01
"""The length of a round: after each change the caches are the other's."""

PAYS = 0.98
"""A way must take less than this share of the other's time."""


def pays(way: Callable[[], object], other: Callable[[], object], threads: int) -> bool:
    """Whether `way` is faster than `other` by more than noise."""
    ours, theirs = raced(way, other, threads)
    return ours < PAYS * theirs


def raced(
    way: Callable[[], object], other: Callable[[], object], threads: int
) -> tuple[float, float]:
    """The milliseconds of each. Each has its turn in every round, for half a second, or five
    rounds; what else ran on the machine is in the slower ones."""
    # A thread by itself computes for all of its time, whoever else had the core meanwhile.
    clock = time.process_time if threads == 1 else time.perf_counter
    counts = [_warm(way), _warm(other)]
    seconds: list[tuple[float, float]] = []
    until = time.perf_counter() + _SECONDS
    while len(seconds) < _FEWEST or (time.perf_counter() < until and len(seconds) < _MOST):
        seconds.append((_seconds(way, counts[0], clock), _seconds(other, counts[1], clock)))
    ours, theirs = (statistics.quantiles(each)[0] for each in zip(*seconds, strict=True))
    return 1000 * ours, 1000 * theirs


def _warm(way: Callable[[], object]) -> int:
    """Returns how many inferences make a round."""
    way()
    return max(1, int(_ROUND_SECONDS / max(_seconds(way, 2, time.perf_counter), 1e-9)))


def _seconds(way: Callable[[], object], count: int, clock: Callable[[], float]) -> float:
    started = clock()
    for _ in range(count):
        way()
    return (clock() - started) / count
