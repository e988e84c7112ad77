"""A winner is believed among those that may have been ahead of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunegate.tune.task_history import (
    MAX_FINALISTS,
    MIN_FINALISTS,
    TIE_RATIO,
    finalist_count,
    tie_count,
)

times = st.lists(st.floats(0.01, 100.0), max_size=40).map(sorted)
trials = st.integers(0, 5000)


@given(times, trials)
def test_it_is_two_at_least_and_eight_at_most_where_there_are_so_many(
    found: list[float], count: int
) -> None:
    number = finalist_count(found, count)
    assert min(MIN_FINALISTS, len(found)) <= number <= min(MAX_FINALISTS, len(found))


@given(times, trials)
def test_what_is_far_behind_is_not_measured_again_beyond_the_first_two(
    found: list[float], count: int
) -> None:
    chosen = found[MIN_FINALISTS : finalist_count(found, count)]
    assert all(each <= TIE_RATIO * found[0] for each in chosen)


def test_a_task_with_few_trials_has_few_and_one_with_many_has_more() -> None:
    alike = [1.0 + 0.001 * number for number in range(40)]
    assert [finalist_count(alike, count) for count in (3, 64, 65, 128, 256, 2000)] == [
        2,
        2,
        3,
        4,
        8,
        8,
    ]


def test_a_clear_winner_is_measured_again_beside_the_second() -> None:
    assert finalist_count([1.0, 1.5, 1.6], 64) == 2
    assert finalist_count([1.0], 64) == 1
    assert finalist_count([], 64) == 0


def test_only_what_is_not_told_apart_is_measured_once_more() -> None:
    assert tie_count([1.0, 1.05, 1.09, 1.2]) == 3
    assert tie_count([1.0, 1.2]) == 0
    assert tie_count([1.0]) == 0
    assert tie_count([]) == 0
