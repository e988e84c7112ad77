"""The mean and the slow end of the latencies inside a launch, which block medians hide.

Each is a separate Student's t test over launches. The mean of a launch is the Hodges-Lehmann
estimate over pairs of block means: a few disturbed blocks hardly move it, a slow inference in every
block does. A percentile is taken over all inferences of a launch. If the base alone scatters too
much, the percentile is unresolved: it can still fail, but does not hold up a pass.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Literal

from tunegate.artifacts.histogram import Histogram, merged_histogram
from tunegate.artifacts.measurements import Inside, Launch, Stalls
from tunegate.decide import stalls
from tunegate.decide.decision import (
    FIRST_FAIL_ERROR,
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
"""Changes from this share of the margin on are suspicious. An unresolved test is dropped only if
its change is smaller."""
_FIRST_SUSPICION = 0.01
"""The error below which a slower first block holds up a pass: it is one of many, so it scatters."""
_ROUNDING = 1e-9
_WORST_FIRST: tuple[CellDecision, ...] = ("fail", "undecided", "pass")
_TAILS: tuple[tuple[Literal["p90", "p99"], float], ...] = (("p90", 0.90), ("p99", 0.99))


def inside(
    launches: Sequence[Launch], *, margin: float, analyses: int, cells: int
) -> tuple[Inside, ...]:
    """Returns the tests of launches that kept their times. `margin` is ln(1 + the allowed
    slowdown)."""
    with_times = [x for x in launches if _has_times(x.base_times) and _has_times(x.head_times)]
    if len(with_times) < 2:  # noqa: PLR2004 -- a spread needs two
        return ()
    tails = [_tail(tail, with_times, margin, analyses, cells) for tail in _TAILS]
    if any(launch.mean_effect is None for launch in with_times):
        return tuple(tails)
    means = (
        _mean(with_times, margin, analyses, cells),
        _mean_of_all(with_times, margin, analyses, cells),
    )
    return (*means, *_test_first_block(with_times, margin, analyses, cells), *tails)


def mean_effects(launches: Sequence[Launch]) -> list[float]:
    """Returns the mean effects of the launches that have one."""
    return [launch.mean_effect for launch in launches if launch.mean_effect is not None]


def _mean(launches: Sequence[Launch], margin: float, analyses: int, cells: int) -> Inside:
    effects = mean_effects(launches)
    mean_bounds = bounds(effects, analyses=analyses, cells=cells, fail_error=MEAN_FAIL_ERROR)
    base, head = _merge_histograms(launches)
    return Inside(
        what="mean",
        base_ms=base.mean_ms(),
        head_ms=head.mean_ms(),
        change_percent=percent_interval(mean_bounds),
        is_resolved=mean_bounds.high < margin,
        decision=_decision(mean_bounds, margin, may_hold_up=True),
    )


def _mean_of_all(launches: Sequence[Launch], margin: float, analyses: int, cells: int) -> Inside:
    """Returns the test of the mean of all inferences. A head that stalls more often than the base
    fails by it on any machine."""
    sides = [(_times(x.base_times), _times(x.head_times)) for x in launches]
    effects = [math.log(h.mean_ms() / b.mean_ms()) for b, h in sides]
    mean_bounds = bounds(effects, analyses=analyses, cells=cells, fail_error=MEAN_FAIL_ERROR)
    over = [math.log(base.mean_ms() / base.quantile_ms(0.5)) for base, _ in sides]
    is_resolved = _tells(over, margin, analyses)
    base, head = _merge_histograms(launches)
    by_mean = _decision(mean_bounds, margin, may_hold_up=is_resolved)
    stall_sizes = stalls.total_stalls(launches)
    by_stalls = _by_stalls(stall_sizes, mean_bounds, margin, analyses * cells)
    return Inside(
        what="mean-of-all",
        base_ms=base.mean_ms(),
        head_ms=head.mean_ms(),
        change_percent=percent_interval(mean_bounds),
        is_resolved=is_resolved,
        decision=min(by_mean, by_stalls, key=_WORST_FIRST.index),
        stalls=stall_sizes,
    )


def _by_stalls(sizes: Sequence[Stalls], mean: Bounds, margin: float, parts: int) -> CellDecision:
    """Returns the decision by stalls that come with the head and are frequent enough to move p99.9,
    or the mean by its margin. Any size may fail; each has its part of the error."""
    is_over = mean.center > margin
    for size in sizes:
        is_sure = stalls.chance_of(size) <= stalls.FAIL_ERROR / (parts * len(sizes))
        if is_sure and (is_over or stalls.exceed_tolerated_share(size)):
            return "fail"
    worst = stalls.clearest(sizes)
    if worst is None:
        return "pass"
    chance, is_much = stalls.chance_of(worst), stalls.exceed_tolerated_share(worst)
    is_costly = mean.center > margin * _SUSPICIOUS
    if chance <= stalls.COSTLY_SUSPICION and is_costly:
        return "undecided"
    return "undecided" if chance <= stalls.SUSPICION and is_much else "pass"


def _test_first_block(
    launches: Sequence[Launch], margin: float, analyses: int, cells: int
) -> Iterator[Inside]:
    """Yields the test of the first block of either side, which the mean over pairs of blocks leaves
    out as one of many; none where a launch did not keep it."""
    sides = [launch.first_ms for launch in launches if launch.first_ms is not None]
    if len(sides) < len(launches):
        return
    effects = [math.log(head / base) for base, head in sides]
    block_bounds = bounds(effects, analyses=analyses, cells=cells, fail_error=FIRST_FAIL_ERROR)
    is_slower = bounds(effects, analyses=1, cells=1, fail_error=_FIRST_SUSPICION).low > margin
    base_ms, head_ms = (statistics.geometric_mean(times) for times in zip(*sides, strict=True))
    yield Inside(
        what="first-block",
        base_ms=base_ms,
        head_ms=head_ms,
        change_percent=percent_interval(block_bounds),
        is_resolved=block_bounds.high < margin,
        decision="fail" if block_bounds.low > margin else "undecided" if is_slower else "pass",
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
    effects = [math.log(h.quantile_ms(share) / b.quantile_ms(share)) for b, h in sides]
    tail_bounds = bounds(effects, analyses=analyses, cells=cells, fail_error=TAIL_FAIL_ERROR)
    is_resolved = _has_enough(sides, share) and _machine_tells(
        [base for base, _ in sides], share, margin, analyses
    )
    base, head = _merge_histograms(launches)
    return Inside(
        what=what,
        base_ms=base.quantile_ms(share),
        head_ms=head.quantile_ms(share),
        change_percent=percent_interval(tail_bounds),
        is_resolved=is_resolved,
        decision=_decision(tail_bounds, margin, may_hold_up=is_resolved),
    )


def _decision(interval: Bounds, margin: float, *, may_hold_up: bool) -> CellDecision:
    if not math.isfinite(interval.center):
        return "undecided"
    if interval.low > margin:
        return "fail"
    if interval.high < margin:
        return "pass"
    return "undecided" if may_hold_up and interval.center > margin * _SUSPICIOUS else "pass"


def _has_enough(sides: Sequence[tuple[Histogram, Histogram]], share: float) -> bool:
    """Returns whether each side of each launch has an inference beyond the percentile: 60
    inferences have no p99."""
    return all(times.total * (1 - share) >= 1 - _ROUNDING for side in sides for times in side)


def _machine_tells(bases: Sequence[Histogram], share: float, margin: float, analyses: int) -> bool:
    """Returns whether this machine could detect a change in a head that scatters as the base does.
    The head's own scatter is ignored, so it cannot excuse itself."""
    over = [math.log(base.quantile_ms(share) / base.quantile_ms(0.5)) for base in bases]
    return _tells(over, margin, analyses)


def _tells(over: Sequence[float], margin: float, analyses: int) -> bool:
    """Returns whether the tails of the base's launches, each over its median, scatter little
    enough."""
    error = math.sqrt(2 / len(over)) * statistics.stdev(over)
    return t_quantile(len(over) - 1, 1 - PASS_ERROR / analyses) * error <= margin * _SUSPICIOUS


def _merge_histograms(launches: Sequence[Launch]) -> tuple[Histogram, Histogram]:
    base = merged_histogram([launch.base_times for launch in launches])
    return base, merged_histogram([launch.head_times for launch in launches])


def _has_times(histogram: Histogram | None) -> bool:
    return histogram is not None and histogram.total > 0


def _times(histogram: Histogram | None) -> Histogram:
    return histogram if histogram is not None else Histogram(first=0, counts=())
