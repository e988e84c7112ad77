"""One batch whose candidates were timed beside each other: what is measured again
alone, and what counts then."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from tunegate.engine.protocol import Measured
from tunegate.tuning.parallelism.precision import checked, correction, error

_BESIDE_OTHERS = frozenset({"runtime", "timeout", "wrong"})
"""Failures that others on the device may have caused."""


class CheckedBatch(NamedTuple):
    """`error` is the mean relative one before the check, None where nothing says it; `failures` are
    those that did not happen alone."""

    results: tuple[Measured, ...]
    error: float | None
    failures: int


def to_check(results: Sequence[Measured], rng: random.Random) -> tuple[int, ...]:
    """Returns the numbers of candidates to be measured again alone: those that failed, a sample
    with all outliers, and the fastest, so that nothing becomes the best by an optimistic time."""
    good = [result for result in results if result.status == "ok"]
    failed = [result.number for result in results if result.status in _BESIDE_OTHERS]
    places = checked([_share(result) for result in good], rng)
    fastest = sorted(good, key=_median)[:1]
    again = [good[place].number for place in places] + [result.number for result in fastest]
    return tuple(dict.fromkeys([*failed, *again]))


def corrected_batch(results: Sequence[Measured], alone: Mapping[int, Measured]) -> CheckedBatch:
    """Returns the batch with corrected times: those measured alone count, the others are reduced by
    the error of the batch."""
    together = {result.number: result for result in results}
    both = {
        number: _median(again)
        for number, again in alone.items()
        if again.status == "ok" and together[number].status == "ok"
    }
    off = error({number: _median(together[number]) for number in both}, both)
    factor = correction(off)
    return CheckedBatch(
        results=tuple(alone.get(r.number) or _corrected(r, factor) for r in results),
        error=off,
        failures=sum(
            together[number].status in _BESIDE_OTHERS and again.status == "ok"
            for number, again in alone.items()
        ),
    )


def _share(result: Measured) -> float:
    """The share of the device in the time that the measurement took."""
    seconds = max(result.run_seconds - result.waited_seconds, 1e-6)
    return _median(result) / 1e9 / seconds


def _median(result: Measured) -> float:
    return statistics.median(result.nanoseconds)


def _corrected(result: Measured, factor: float) -> Measured:
    times = tuple(max(1, round(n * factor)) for n in result.nanoseconds)
    return msgspec.structs.replace(result, nanoseconds=times)
