from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.models.squeezenet import TASKS
from tests.support.outcome_parts import outcome
from tests.support.tuning_tasks import make_task
from tunegate.artifacts.changes import Side
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.tasks import TaskUse, TuningTask
from tunegate.tune import headroom
from tunegate.tune.expected_time import is_shared, paying_sides
from tunegate.tune.next_task import Work, roofline_gaps


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


# A roofline drawn by the tasks of the run themselves.

works = st.lists(
    st.builds(
        Work,
        st.floats(0, 1e12),
        st.floats(0, 1e9),
        st.one_of(st.none(), st.floats(1e-4, 1e4)),
    ),
    max_size=20,
)


def test_the_fastest_task_is_behind_nobody() -> None:
    assert roofline_gaps([Work(1e9, 0, 10.0), Work(1e9, 0, 40.0)]) == [
        0.0,
        pytest.approx(math.log(4)),
    ]


def test_what_moves_many_bytes_is_measured_by_bytes() -> None:
    copying = Work(0, 4e6, 1.0)
    assert roofline_gaps([Work(1e9, 1e6, 10.0), copying, Work(0, 1e6, 1.0)]) == [
        0.0,
        0.0,
        pytest.approx(math.log(4)),
    ]


def test_of_a_task_without_a_time_nothing_is_known() -> None:
    assert roofline_gaps([Work(1e9, 0, None), Work(1e9, 0, 1.0)]) == [0.0, 0.0]


def test_a_fraction_of_an_operation_is_no_infinite_gap() -> None:
    assert roofline_gaps([Work(5e-324, 0, 1.0), Work(1e9, 0, 1.0)]) == [0.0, 0.0]


@given(works)
def test_no_gap_is_infinite(tasks: list[Work]) -> None:
    assert all(math.isfinite(gap) for gap in roofline_gaps(tasks))


@given(works)
def test_somebody_is_always_in_front(tasks: list[Work]) -> None:
    gaps = roofline_gaps(tasks)
    assert all(gap >= 0 for gap in gaps)
    known = [gap for gap, work in zip(gaps, tasks, strict=True) if work.best_ms]
    assert not known or min(known) == pytest.approx(0.0)


@given(works, st.floats(0.001, 1000))
def test_a_machine_that_is_slower_in_all_changes_nothing(tasks: list[Work], factor: float) -> None:
    slower = [w._replace(best_ms=w.best_ms and w.best_ms * factor) for w in tasks]
    assert roofline_gaps(slower) == pytest.approx(roofline_gaps(tasks), abs=1e-6)


def used_by(*uses: tuple[str, Side]) -> TuningTask:
    made = [TaskUse(model=model, side=side, weight=1, name="conv") for model, side in uses]
    return msgspec.structs.replace(make_task(), uses=tuple(made))


@pytest.mark.parametrize("side", ["base", "head"])
def test_the_side_that_alone_has_a_task_pays_for_it(side: Side) -> None:
    assert paying_sides(used_by(("m", side))) == (("m", side),)


def test_what_both_sides_of_a_model_have_is_shared() -> None:
    assert is_shared(used_by(("m", "base"), ("m", "head")))


@pytest.mark.parametrize(("base", "head", "paying"), [(3, 2, "base"), (2, 3, "head")])
def test_the_side_that_runs_a_layer_more_often_pays(base: int, head: int, paying: Side) -> None:
    """One of three equal layers was changed: its new form is tuned, so the old one must be."""
    uses = [
        TaskUse(model="m", side="base", weight=base, name="conv"),
        TaskUse(model="m", side="head", weight=head, name="conv"),
    ]
    task = msgspec.structs.replace(make_task(), uses=tuple(uses))
    assert paying_sides(task) == (("m", paying),)


def test_functions_of_one_side_that_are_the_same_task_are_counted_together() -> None:
    assert is_shared(used_by(("m", "base"), ("m", "base"), ("m", "head"), ("m", "head")))
    assert paying_sides(used_by(("m", "base"), ("m", "base"), ("m", "head"))) == (("m", "base"),)


def test_a_base_of_one_model_and_a_head_of_another_share_nothing() -> None:
    task = used_by(("m", "base"), ("n", "head"))
    assert paying_sides(task) == (("m", "base"), ("n", "head"))
    assert not is_shared(task)


def test_a_new_model_pays_for_what_another_one_shares() -> None:
    assert paying_sides(used_by(("m", "base"), ("m", "head"), ("n", "head"))) == (("n", "head"),)
