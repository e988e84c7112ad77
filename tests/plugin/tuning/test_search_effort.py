"""What is looked at to find a batch follows what the batch is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunegate.tuning.search_effort import SearchEffort, effort_for

BATCHES = st.integers(min_value=1, max_value=200)


def test_a_usual_batch_is_bred_twice_from_five_hundred_drafts() -> None:
    assert effort_for(8) == SearchEffort(512, 2)


def test_the_last_two_trials_are_picked_from_a_few() -> None:
    assert effort_for(2) == SearchEffort(128, 0)


@given(BATCHES, BATCHES)
def test_a_larger_batch_never_gets_less(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert effort_for(small) <= effort_for(large)


@given(BATCHES)
def test_there_is_always_something_to_choose_from_and_never_an_evolution_of_minutes(
    candidates: int,
) -> None:
    effort = effort_for(candidates)
    assert 2 * min(candidates, 64) <= effort.drafts <= 512
    assert 0 <= effort.generations <= 2
