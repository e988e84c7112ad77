"""Latencies in bins of one percent: small enough to store, exact enough for tails."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from tunegate.artifacts.measurements import Histogram

STEP = math.log(1.01)


def histogram(times_ms: Iterable[float]) -> Histogram:
    """Bin `i` holds the times from 1.01**i milliseconds on."""
    counted = Counter(math.floor(math.log(time) / STEP) for time in times_ms if time > 0)
    if not counted:
        return Histogram(first=0, counts=())
    first, last = min(counted), max(counted)
    return Histogram(first=first, counts=tuple(counted[i] for i in range(first, last + 1)))


def merged_histogram(histograms: Sequence[Histogram]) -> Histogram:
    """Returns the sum of the histograms."""
    known = [each for each in histograms if any(each.counts)]
    if not known:
        return Histogram(first=0, counts=())
    first = min(each.first for each in known)
    counts = np.zeros(max(each.first + len(each.counts) for each in known) - first, dtype=np.int64)
    for each in known:
        at = each.first - first
        counts[at : at + len(each.counts)] += each.counts
    filled = np.flatnonzero(counts)
    begin, end = int(filled[0]), int(filled[-1]) + 1
    return Histogram(first=first + begin, counts=tuple(counts[begin:end].tolist()))


def total(found: Histogram) -> int:
    return sum(found.counts)


def quantile_ms(found: Histogram, share: float) -> float:
    """Returns the time that this share of inferences does not exceed, to one percent: the upper
    edge of its bin. Raises ValueError for an empty histogram."""
    wanted = max(1, math.ceil(share * total(found)))
    for at, count in enumerate(found.counts):
        wanted -= count
        if wanted <= 0:
            return math.exp((found.first + at + 1) * STEP)
    message = "an empty histogram has no quantile"
    raise ValueError(message)


def mean_ms(found: Histogram) -> float:
    """Returns the mean, by the middles of the bins. Raises ValueError for an empty histogram."""
    count = total(found)
    if not count:
        message = "an empty histogram has no mean"
        raise ValueError(message)
    middles = (math.exp((found.first + at + 0.5) * STEP) for at in range(len(found.counts)))
    return sum(n * ms for n, ms in zip(found.counts, middles, strict=True)) / count


def slower_than(found: Histogram, limit_ms: float) -> int:
    """Returns the number of inferences over the limit. The bin of the limit itself counts as
    over."""
    limit = math.floor(math.log(limit_ms) / STEP)
    return sum(count for at, count in enumerate(found.counts) if found.first + at >= limit)
