from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_records import make_record
from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.format.records import CONFIRMED_REPEATS, WINNERS_CURSE, TuningRecord


def timed(*milliseconds: float) -> TuningRecord:
    return make_record(run_nanoseconds=tuple(round(ms * 1e6) for ms in milliseconds))


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=9))
def test_the_median_is_that_of_the_times(nanoseconds: list[int]) -> None:
    record = make_record(run_nanoseconds=tuple(nanoseconds))
    assert record.median_ms == pytest.approx(statistics.median(nanoseconds) / 1e6)


def test_a_candidate_that_failed_takes_for_ever_and_is_never_confirmed() -> None:
    failed = make_record(status="wrong", run_nanoseconds=())
    assert failed.median_ms == math.inf
    assert not failed.is_confirmed
    assert failed.shrunk_ms == math.inf


def test_a_failure_and_a_candidate_without_times_take_for_ever() -> None:
    assert make_record(status="wrong").median_ms == math.inf
    assert make_record(run_nanoseconds=()).median_ms == math.inf


def test_enough_repeats_or_one_long_run_confirm_a_time() -> None:
    assert timed(*[1.0] * CONFIRMED_REPEATS).is_confirmed
    assert not timed(*[1.0] * (CONFIRMED_REPEATS - 1)).is_confirmed
    assert timed(1000.1).is_confirmed
    assert not timed(1000.0).is_confirmed


def test_a_brief_look_must_be_faster_by_more_than_luck() -> None:
    confirmed = timed(*[1.0] * CONFIRMED_REPEATS)
    assert confirmed.shrunk_ms == 1.0
    assert timed(1.0).shrunk_ms == WINNERS_CURSE
    assert timed(0.95).shrunk_ms > confirmed.shrunk_ms > timed(0.9).shrunk_ms


def test_a_line_is_shown_once_and_in_the_order_of_its_first_time() -> None:
    statistics = CacheStatistics()
    for text in ("the bucket is slow", "a segment is corrupt", "the bucket is slow"):
        statistics.note(text)
    assert statistics.notes == ("the bucket is slow", "a segment is corrupt")


def test_a_run_begins_with_nothing_counted() -> None:
    first, second = CacheStatistics(), CacheStatistics()
    first.requests["get"] += 1
    first.note("a line")
    assert (second.requests.total(), second.notes, second.seconds) == (0, (), 0.0)
