from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.models.squeezenet import TASKS
from tests.support.outcome_parts import outcome
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.tune import headroom


def tuned(trials: int, before_ms: float = 4.0, best_ms: float = 1.0) -> TaskOutcome:
    row = msgspec.structs.replace(TASKS[0], source="search", trials=trials, stopped="budget")
    (task,) = outcome((row,)).tasks
    return msgspec.structs.replace(task, before_ms=before_ms, best_ms=best_ms)


def test_what_was_never_tuned_is_expected_to_gain_like_what_was() -> None:
    tasks = [tuned(8, best_ms=best_ms) for best_ms in (1.0, 2.0, 3.0)]
    assert headroom.of_untuned(10.0, tasks) == pytest.approx(5.0)
    assert headroom.of_untuned(10.0, [tuned(0)]) is None
    assert headroom.of_untuned(10.0, []) is None


@given(st.integers(1, 200), st.floats(0.01, 100))
def test_more_of_the_same_gives_back_a_part_and_never_all(trials: int, now_ms: float) -> None:
    assert 0 < headroom.of_unfinished(now_ms, tuned(trials)) < now_ms
    assert 0 < headroom.of_transferred(now_ms) < now_ms


def test_a_search_that_still_gains_promises_more_than_one_that_stopped_gaining() -> None:
    falling = tuned(64)
    flat = msgspec.structs.replace(
        falling,
        costs=tuple(msgspec.structs.replace(cost, milliseconds=1.0) for cost in falling.costs),
    )
    steep = msgspec.structs.replace(
        falling,
        costs=tuple(
            msgspec.structs.replace(cost, milliseconds=10.0 / (n + 1))
            for n, cost in enumerate(falling.costs)
        ),
    )
    assert headroom.of_unfinished(1.0, steep) > 1.2 * headroom.of_unfinished(1.0, flat)


def test_a_search_without_a_history_is_taken_at_its_trials() -> None:
    bare = msgspec.structs.replace(tuned(8), costs=())
    assert 0.1 < headroom.of_unfinished(1.0, bare) < 0.3


def test_a_search_that_was_told_where_to_begin_has_little_left_to_find() -> None:
    told = tuned(64)
    blind = msgspec.structs.replace(
        told,
        costs=tuple(msgspec.structs.replace(cost, pick="random") for cost in told.costs),
    )
    assert headroom.of_unfinished(1.0, told) < 0.5 * headroom.of_unfinished(1.0, blind)
