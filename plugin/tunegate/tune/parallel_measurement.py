"""One batch of candidates timed beside each other: which are measured again alone, and which times
count."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from tunegate.tune.protocol import Measured

_BESIDE_OTHERS = frozenset({"runtime", "timeout", "wrong"})
"""Failures that other candidates on the device may have caused."""


class CheckedBatch(NamedTuple):
    """`error` is the mean relative error before the check, None if unknown. `failures` counts those
    that did not happen alone."""

    results: tuple[Measured, ...]
    error: float | None
    failures: int


def to_check(results: Sequence[Measured], rng: random.Random) -> tuple[int, ...]:
    """Returns the numbers of candidates to measure again alone: failed ones, a sample with all
    outliers, and the fastest, so that no optimistic time becomes the best."""
    good = [result for result in results if result.status == "ok"]
    failures = [result.number for result in results if result.status in _BESIDE_OTHERS]
    places = pick_results_to_check([_share(result) for result in good], rng)
    fastest = sorted(good, key=_median)[:1]
    again = [good[place].number for place in places] + [result.number for result in fastest]
    return tuple(dict.fromkeys([*failures, *again]))


def corrected_batch(results: Sequence[Measured], alone: Mapping[int, Measured]) -> CheckedBatch:
    """Returns the batch with corrected times: lone times count as they are, the others are reduced
    by the error of the batch."""
    together = {result.number: result for result in results}
    both = {
        number: _median(again)
        for number, again in alone.items()
        if again.status == "ok" and together[number].status == "ok"
    }
    batch_error = error({number: _median(together[number]) for number in both}, both)
    factor = correction(batch_error)
    return CheckedBatch(
        results=tuple(alone.get(r.number) or _correct_times(r, factor) for r in results),
        error=batch_error,
        failures=sum(
            together[number].status in _BESIDE_OTHERS and again.status == "ok"
            for number, again in alone.items()
        ),
    )


def _share(result: Measured) -> float:
    """Returns the share of the device's time in the measurement's time."""
    seconds = max(result.run_seconds - result.waited_seconds, 1e-6)
    return _median(result) / 1e9 / seconds


def _median(result: Measured) -> float:
    return statistics.median(result.nanoseconds)


def _correct_times(result: Measured, factor: float) -> Measured:
    times = tuple(max(1, round(n * factor)) for n in result.nanoseconds)
    return msgspec.structs.replace(result, nanoseconds=times)


# The number of candidates of each task timed at once on one device, batch by batch.

_WORTH_IT = 0.1
"""Measuring more at once saves time only if workers wait for the device for at least this share of
their time. On few cores they build most of the time."""


class Parallelism:
    """DOPpler's law, with a state for each task as in the source: kernels that share a scarce
    resource disturb each other more. A run has too few batches for every task to begin with one
    candidate, so a task begins where the last one stands. `slots` are the device's."""

    def __init__(self, slots: int, first: int = 1) -> None:
        self._slots = slots
        self._latest = Degree(now=min(first, slots))
        self._degrees: dict[str, Degree] = {}
        self._most = self._latest.now
        self._errors: list[float] = []

    def at_once(self, workload: str) -> int:
        return self._degree_of(workload).now

    def note_alone(self, workload: str, results: Sequence[Measured]) -> None:
        """Books a batch whose candidates each had the device alone."""
        busy_seconds = sum(result.build_seconds + result.run_seconds for result in results)
        waiting_seconds = sum(result.waited_seconds for result in results)
        if waiting_seconds > _WORTH_IT * busy_seconds:
            self._adjust(workload, error=0.0, failures=0)

    def note_beside(self, workload: str, batch: CheckedBatch) -> None:
        """Books a batch that was timed in parallel, and checked."""
        if batch.error is not None:
            self._errors.append(batch.error)
        self._adjust(workload, error=batch.error or 0.0, failures=batch.failures)

    def notes(self) -> tuple[str, ...]:
        """Returns lines for the report."""
        if self._most == 1:
            return ()
        at_once = f"up to {self._most} candidates were timed at once"
        if not self._errors:
            return (f"{at_once}; too few were timed again alone to tell how far off that is",)
        off = f"{statistics.fmean(self._errors):.1%}"
        check_note = f"the check found their times off by {off} on average, and they were corrected"
        return (f"{at_once}; {check_note}",)

    def _adjust(self, workload: str, *, error: float, failures: int) -> None:
        before = self._degree_of(workload)
        self._latest = adjust_degree(before, error=error, failures=failures, most=self._slots)
        self._degrees[workload] = self._latest
        self._most = max(self._most, self._latest.now)

    def _degree_of(self, workload: str) -> Degree:
        return self._degrees.get(workload, self._latest)


# How many candidates one device measures at once: DOPpler's control law (Borowiec et al., IEEE TPDS
# 34(7), 2023, equations 6 and 7, with the constants of the authors' code). It applies the
# congestion control of BIC-TCP to a degree of parallelism: half way up to the last degree that was
# too much, then beyond it, and down at once if the measurements of a batch disturbed each other.


TOLERANCE = 0.05
"""Bounds both the mean relative error and the share of failures."""
_DECREASE = 0.2
"""The share that a degree loses."""
_LEAST_STEP, _MOST_STEP = 2, 7
FIRST_CEILING = 128


class Degree(msgspec.Struct, frozen=True, kw_only=True):
    """`now` is the number of candidates at once, `ceiling` the last number that was too many."""

    now: int = 1
    ceiling: int = FIRST_CEILING


def adjust_degree(degree: Degree, *, error: float, failures: int, most: int) -> Degree:
    """Returns the degree for the next batch, 1 to `most`, after a batch whose times were off by
    `error` (mean, relative) and in which `failures` candidates failed only because others ran
    beside them.

    Two things differ from the source. The published step down, floor(0.8 (n + 1)), maps 2, 3 and 4
    to themselves; here a degree that is too much falls by at least one. And a device has a maximum.
    """
    wider = degree.now + 1
    if error > TOLERANCE or failures > int(degree.now * TOLERANCE):
        ceiling = int(wider * (2 - _DECREASE) / 2) if wider < degree.ceiling else wider
        fallen = min(int(wider * (1 - _DECREASE)), degree.now - 1)
        return Degree(now=max(1, fallen), ceiling=max(1, ceiling))
    distance = (degree.ceiling - wider) / 2 if wider < degree.ceiling else wider - degree.ceiling
    step = min(max(distance, _LEAST_STEP), _MOST_STEP)
    return Degree(now=min(int(wider + step), max(1, most)), ceiling=degree.ceiling)


# The error of times measured in parallel: DOPpler, equations 3 to 5, with the constants of the
# authors' code. A sample and the outliers are measured again alone, and their error is applied to
# the others.

SAMPLE_SHARE = 0.2
MIN_TO_CHECK = 3
"""With fewer good results in a batch, nothing is sampled."""
OUTLIER_SCORE = 3.0
MAX_CORRECTED = 0.25
"""At this error or more, times tell too little to be corrected."""
_NORMAL = 0.6745
"""The median absolute deviation of a normal distribution, in standard deviations."""


def outliers(values: Sequence[float]) -> tuple[int, ...]:
    """Returns the indexes of values far from the median, by the deviations on their own side
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


def pick_results_to_check(shares: Sequence[float], rng: random.Random) -> tuple[int, ...]:
    """Returns the indexes of good results to measure again alone: the outliers, and others up to a
    fifth of the batch. A share is a candidate's device time over the time of its measurement."""
    if len(shares) < MIN_TO_CHECK:
        return ()
    outlier_places = outliers(shares)
    count = max(len(outlier_places), math.ceil(SAMPLE_SHARE * len(shares)))
    others = [place for place in range(len(shares)) if place not in outlier_places]
    return tuple(sorted([*outlier_places, *rng.sample(others, count - len(outlier_places))]))


def error(together_ms: Mapping[int, float], alone_ms: Mapping[int, float]) -> float | None:
    """Returns the mean relative error of candidates measured both ways, None for fewer than two."""
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
