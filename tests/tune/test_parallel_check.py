"""A batch that was timed beside others: what is asked again, and what is believed."""

from __future__ import annotations

import random

import pytest

from tunegate.tune.parallel_measurement import corrected_batch, to_check
from tunegate.tune.protocol import Measured


def timed(number: int, nanoseconds: int, run_seconds: float = 0.1) -> Measured:
    return Measured(
        number=number, status="ok", nanoseconds=(nanoseconds,) * 3, run_seconds=run_seconds
    )


def failed(number: int, status: str = "runtime") -> Measured:
    return Measured(number=number, status="compile" if status == "compile" else "runtime")


def checked(*results: Measured) -> set[int]:
    return set(to_check(results, random.Random(1)))


def test_a_fifth_and_the_fastest_are_asked_again() -> None:
    batch = [timed(n, 1_000_000 + 1000 * n) for n in range(10)]
    again = checked(*batch)
    assert 0 in again
    assert 2 <= len(again) <= 3


def test_failures_that_others_may_have_caused_are_asked_again() -> None:
    assert checked(failed(1), failed(2, "compile"), timed(3, 1000)) == {1, 3}


def test_an_outlier_is_asked_again() -> None:
    odd = timed(7, 10_000_000, run_seconds=0.02)
    assert 7 in checked(*(timed(n, 1_000_000 + 1000 * n) for n in range(6)), odd)


def test_what_was_measured_alone_counts_and_the_others_are_corrected() -> None:
    batch = [timed(n, 1_000_000) for n in range(4)]
    found = corrected_batch(batch, {0: timed(0, 900_000), 1: timed(1, 900_000)})
    assert found.error == pytest.approx(0.1)
    assert [r.nanoseconds[0] for r in found.results] == [900_000, 900_000, 900_000, 900_000]
    assert found.failures == 0


def test_an_error_that_is_too_large_corrects_nobody() -> None:
    batch = [timed(n, 1_000_000) for n in range(4)]
    found = corrected_batch(batch, {0: timed(0, 500_000), 1: timed(1, 500_000)})
    assert [r.nanoseconds[0] for r in found.results] == [500_000, 500_000, 1_000_000, 1_000_000]


def test_a_failure_that_does_not_happen_alone_was_the_others_fault() -> None:
    found = corrected_batch([failed(1), failed(2)], {1: timed(1, 1000), 2: failed(2)})
    assert found.failures == 1
    assert [r.status for r in found.results] == ["ok", "runtime"]


def test_without_a_check_times_stay_as_they_are() -> None:
    found = corrected_batch([timed(1, 1000)], {})
    assert found == ((timed(1, 1000),), None, 0)
