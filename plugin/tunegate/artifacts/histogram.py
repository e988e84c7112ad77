"""Latencies in bins of one percent: small enough to store, exact enough for tails."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import msgspec

STEP = math.log(1.01)
_MOST_BINS = 10_000
"""Bins on either side of a millisecond. A file with more of them is refused."""


class Histogram(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies in bins of one percent. The first of `counts` is bin number `first`, which begins
    at 1.01**first milliseconds."""

    first: Annotated[int, msgspec.Meta(ge=-_MOST_BINS, le=_MOST_BINS)]
    counts: Annotated[
        tuple[Annotated[int, msgspec.Meta(ge=0)], ...], msgspec.Meta(max_length=2 * _MOST_BINS)
    ]

    @property
    def total(self) -> int:
        return sum(self.counts)

    def quantile_ms(self, share: float) -> float:
        """Returns the time that this share of inferences does not exceed, to one percent: the upper
        edge of its bin. Raises ValueError for an empty histogram."""
        remaining = max(1, math.ceil(share * self.total))
        for at, count in enumerate(self.counts):
            remaining -= count
            if remaining <= 0:
                return math.exp((self.first + at + 1) * STEP)
        message = "an empty histogram has no quantile"
        raise ValueError(message)

    def mean_ms(self) -> float:
        """Returns the mean, by the middles of the bins. Raises ValueError for an empty
        histogram."""
        count = self.total
        if not count:
            message = "an empty histogram has no mean"
            raise ValueError(message)
        middles = (math.exp((self.first + at + 0.5) * STEP) for at in range(len(self.counts)))
        return sum(n * ms for n, ms in zip(self.counts, middles, strict=True)) / count

    def slower_than(self, limit_ms: float) -> int:
        """Returns the number of inferences over the limit. The bin of the limit itself counts as
        over."""
        limit = math.floor(math.log(limit_ms) / STEP)
        return sum(self.counts[max(0, limit - self.first) :])


def histogram(times_ms: Iterable[float]) -> Histogram:
    """Bin `i` holds the times from 1.01**i milliseconds on."""
    return _of_bins(Counter(math.floor(math.log(time) / STEP) for time in times_ms if time > 0))


def merged_histogram(histograms: Sequence[Histogram | None]) -> Histogram:
    """Returns the sum of the histograms that there are."""
    bins = Counter[int]()
    for one in filter(None, histograms):
        for at, count in enumerate(one.counts, one.first):
            if count:
                bins[at] += count
    return _of_bins(bins)


def _of_bins(bins: Mapping[int, int]) -> Histogram:
    if not bins:
        return Histogram(first=0, counts=())
    first, last = min(bins), max(bins)
    return Histogram(first=first, counts=tuple(bins.get(i, 0) for i in range(first, last + 1)))
