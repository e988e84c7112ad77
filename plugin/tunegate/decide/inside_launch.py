"""The mean and the slow end of the latencies inside a launch, which the median of a block hides.

Each is a test of its own over launches, with Student's t as for the median. The mean of a launch
is the Hodges-Lehmann estimate over its pairs of block means, which a few disturbed blocks hardly
move and a slow inference in every block does. A percentile of a launch is that of all its
inferences; on a machine whose base alone scatters too much there it is not resolved, and then it
may fail but holds nothing up.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from tunegate.artifacts.measurements import Histogram, Inside, Launch
from tunegate.decide.decision import (
    MEAN_FAIL_ERROR,
    PASS_ERROR,
    TAIL_FAIL_ERROR,
    Bounds,
    CellDecision,
    bounds,
    percent_interval,
)
from tunegate.decide.distributions import t_quantile

_SUSPICIOUS = 1 / 2
"""The share of the margin that makes a change suspicious: a change that is not even seen so large
leaves an unresolved test alone."""
_ROUNDING = 1e-9
_TAILS: tuple[tuple[Literal["p90", "p99"], float], ...] = (("p90", 0.90), ("p99", 0.99))


def inside(
    launches: Sequence[Launch], *, margin: float, analyses: int, cells: int
) -> tuple[Inside, ...]:
    """The tests of launches that kept their times. `margin` is ln(1 + what may be slower)."""
    known = [x for x in launches if _has_times(x.base_times) and _has_times(x.head_times)]
    if len(known) < 2:  # noqa: PLR2004 -- a spread needs two
        return ()
    found = [_tail(tail, known, margin, analyses, cells) for tail in _TAILS]
    if any(launch.mean_effect is None for launch in known):
        return tuple(found)
    return (_mean(known, margin, analyses, cells), *found)


def mean_effects(launches: Sequence[Launch]) -> list[float]:
    """The mean effects of the launches that know theirs."""
    return [launch.mean_effect for launch in launches if launch.mean_effect is not None]


def _mean(launches: Sequence[Launch], margin: float, analyses: int, cells: int) -> Inside:
    effects = mean_effects(launches)
    found = bounds(effects, analyses=analyses, cells=cells, fail_error=MEAN_FAIL_ERROR)
    base, head = _merged(launches)
    return Inside(
        what="mean",
        base_ms=mean_ms(base),
        head_ms=mean_ms(head),
        change_percent=percent_interval(found),
        is_resolved=found.high < margin,
        decision=_decision(found, margin, may_hold_up=True),
    )


def _tail(
    tail: tuple[Literal["p90", "p99"], float],
    launches: Sequence[Launch],
    margin: float,
    analyses: int,
    cells: int,
) -> Inside:
    what, share = tail
    sides = [(_times(x.base_times), _times(x.head_times)) for x in launches]
    effects = [math.log(quantile_ms(h, share) / quantile_ms(b, share)) for b, h in sides]
    found = bounds(effects, analyses=analyses, cells=cells, fail_error=TAIL_FAIL_ERROR)
    is_resolved = _has_enough(sides, share) and _machine_tells(
        [base for base, _ in sides], share, margin, analyses
    )
    base, head = _merged(launches)
    return Inside(
        what=what,
        base_ms=quantile_ms(base, share),
        head_ms=quantile_ms(head, share),
        change_percent=percent_interval(found),
        is_resolved=is_resolved,
        decision=_decision(found, margin, may_hold_up=is_resolved),
    )


def _decision(found: Bounds, margin: float, *, may_hold_up: bool) -> CellDecision:
    if not math.isfinite(found.center):
        return "undecided"
    if found.low > margin:
        return "fail"
    if found.high < margin:
        return "pass"
    return "undecided" if may_hold_up and found.center > margin * _SUSPICIOUS else "pass"


def _has_enough(sides: Sequence[tuple[Histogram, Histogram]], share: float) -> bool:
    """Returns whether each side of each launch has an inference beyond the percentile: one of 60
    has no p99."""
    return all(total(times) * (1 - share) >= 1 - _ROUNDING for side in sides for times in side)


def _machine_tells(bases: Sequence[Histogram], share: float, margin: float, analyses: int) -> bool:
    """Returns whether this machine would tell a head that scatters as the base does. The head's own
    scatter is not asked: it must not buy itself a way out."""
    over = [math.log(quantile_ms(base, share) / quantile_ms(base, 0.5)) for base in bases]
    error = math.sqrt(2 / len(over)) * statistics.stdev(over)
    return t_quantile(len(over) - 1, 1 - PASS_ERROR / analyses) * error <= margin * _SUSPICIOUS


def _merged(launches: Sequence[Launch]) -> tuple[Histogram, Histogram]:
    base = merged_histogram([_times(launch.base_times) for launch in launches])
    return base, merged_histogram([_times(launch.head_times) for launch in launches])


def _has_times(found: Histogram | None) -> bool:
    return found is not None and total(found) > 0


def _times(found: Histogram | None) -> Histogram:
    return found if found is not None else Histogram(first=0, counts=())


# Latencies in bins of one percent: small enough to keep, exact enough for tails.

STEP = math.log(1.01)


def histogram(times_ms: Iterable[float]) -> Histogram:
    """Bin `i` holds the times from 1.01**i milliseconds on."""
    counted = Counter(math.floor(math.log(time) / STEP) for time in times_ms if time > 0)
    if not counted:
        return Histogram(first=0, counts=())
    first, last = min(counted), max(counted)
    return Histogram(first=first, counts=tuple(counted[i] for i in range(first, last + 1)))


def merged_histogram(histograms: Sequence[Histogram]) -> Histogram:
    """All of them together."""
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
    """The time that this share of inferences does not exceed, to one percent; the upper edge of its
    bin. Raises ValueError for an empty histogram."""
    wanted = max(1, math.ceil(share * total(found)))
    for at, count in enumerate(found.counts):
        wanted -= count
        if wanted <= 0:
            return math.exp((found.first + at + 1) * STEP)
    message = "an empty histogram has no quantile"
    raise ValueError(message)


def mean_ms(found: Histogram) -> float:
    """The mean by the middles of the bins. Raises ValueError for an empty histogram."""
    count = total(found)
    if not count:
        message = "an empty histogram has no mean"
        raise ValueError(message)
    middles = (math.exp((found.first + at + 0.5) * STEP) for at in range(len(found.counts)))
    return sum(n * ms for n, ms in zip(found.counts, middles, strict=True)) / count


def slower_than(found: Histogram, limit_ms: float) -> int:
    """Returns the number of inferences over the limit; the bin that the limit lies in counts as
    over."""
    limit = math.floor(math.log(limit_ms) / STEP)
    return sum(count for at, count in enumerate(found.counts) if found.first + at >= limit)
