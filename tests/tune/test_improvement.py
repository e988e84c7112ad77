"""The improvement curve, its noise and its plateaus."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.tune.improvement import (
    FROM_NOTHING,
    INFORMED,
    MeasuredBatch,
    Pace,
    expected_gain,
    is_plateaued,
    seconds_of_a_default,
    seconds_per_candidate,
)


def history(
    *best_ms: float | None, trials: int = 16, seconds: float = 8.0
) -> tuple[MeasuredBatch, ...]:
    return tuple(MeasuredBatch(trials=trials, seconds=seconds, best_ms=ms) for ms in best_ms)


def gain(
    past: tuple[MeasuredBatch, ...],
    candidates: int = 16,
    headroom: float = 0.9,
    pace: Pace = FROM_NOTHING,
    behind: float = 0.0,
) -> float:
    return expected_gain(past, candidates, headroom=headroom, noise=0.01, pace=pace, behind=behind)


def test_the_first_batch_is_expected_to_gain_all_the_room() -> None:
    assert gain((), headroom=0.7) == 0.7


def test_a_task_that_keeps_improving_promises_more_than_one_that_stopped() -> None:
    assert gain(history(10, 8, 6, 5)) > gain(history(10, 8, 8, 8)) > 0


def test_improvements_within_the_noise_promise_nothing() -> None:
    flat, drifting = history(10, 10, 10, 10), history(10, 9.95, 9.9, 9.85)
    assert gain(drifting) == gain(flat)


def test_a_task_that_is_far_behind_promises_more() -> None:
    past = history(10, 8)
    near, far = (gain(past, behind=b) for b in (0.0, 1.5))
    assert far > 1.5 * near


def test_a_search_that_knows_where_to_begin_promises_little_more_unless_far_behind() -> None:
    past = history(10, 8)
    assert gain(past, pace=INFORMED) < 0.5 * gain(past)
    assert gain(past, pace=INFORMED, behind=1.5) > 2 * gain(past, pace=INFORMED)


def test_the_leap_over_the_default_schedule_is_not_taken_for_a_trend() -> None:
    assert gain(history(1.0)) == gain(history(100.0))


def test_a_task_whose_candidates_all_fail_promises_less_and_less() -> None:
    assert gain(history(None)) > gain(history(None, None)) > gain(history(None, None, None))


@given(
    st.lists(st.floats(0.001, 1e4), min_size=0, max_size=20),
    st.integers(1, 64),
    st.floats(0.01, 1),
)
def test_a_gain_is_a_share_of_the_room(
    times: list[float], candidates: int, headroom: float
) -> None:
    falling = sorted(times, reverse=True)
    assert 0 <= gain(history(*falling), candidates, headroom) <= headroom


@given(st.lists(st.floats(0.001, 1e4), min_size=1, max_size=20), st.integers(1, 63))
def test_more_candidates_never_promise_less(times: list[float], candidates: int) -> None:
    past = history(*sorted(times, reverse=True))
    assert gain(past, candidates) <= gain(past, candidates + 1) + 1e-12


def plateaued(*best_ms: float | None) -> bool:
    return is_plateaued(history(*best_ms), noise=0.01, warm_up=2, patience=3)


def test_three_batches_without_improvement_are_a_plateau() -> None:
    assert plateaued(10, 5, 5, 5, 5)
    assert not plateaued(10, 5, 5, 5, 4)


def test_there_is_no_plateau_during_the_warm_up() -> None:
    assert not plateaued(5, 5, 5, 5)


def test_an_improvement_within_the_noise_does_not_end_a_plateau() -> None:
    assert plateaued(10, 5, 5, 5, 4.98)


def test_small_steps_that_add_up_are_no_plateau() -> None:
    assert not plateaued(10, 5, 4.97, 4.94, 4.91)


def test_seconds_per_candidate_are_guessed_only_while_unknown() -> None:
    assert seconds_per_candidate([(), ()]) == 0.5
    assert seconds_per_candidate([history(1.0, trials=4, seconds=8.0), ()]) == 2.0


def test_batches_without_candidates_do_not_stop_the_arithmetic() -> None:
    empty = history(None, trials=0)
    assert gain(empty) == pytest.approx(0.9)
    assert seconds_per_candidate([empty]) == 0.5


def test_default_schedules_come_once_for_each_task() -> None:
    one = MeasuredBatch(trials=2, seconds=1.0, best_ms=1.0, default_seconds=3.0)
    other = MeasuredBatch(trials=2, seconds=1.0, best_ms=1.0, default_seconds=1.0)
    assert seconds_of_a_default([(one, *history(1.0)), (), (other,)]) == 2.0
    assert seconds_of_a_default([(), ()]) == 0.0
