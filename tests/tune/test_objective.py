from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_tasks import make_task
from tunegate.artifacts.changes import ModelSide
from tunegate.tune.budget import TimedTask, is_reached, model_ms, parts_of_target
from tunegate.tune.improvement import MeasuredBatch, TaskState
from tunegate.tune.next_task import RemainingBudget, choose, evenly_served


def timed(name: str, milliseconds: float, weight: int = 1) -> TimedTask:
    return make_task(name, weight=weight), milliseconds


def test_a_model_takes_the_sum_of_its_tasks_as_often_as_they_are_called() -> None:
    ((_, milliseconds),) = model_ms([timed("a", 2.0, weight=3), timed("b", 1.0)]).items()
    assert milliseconds == pytest.approx(7.0)


def test_every_model_must_be_fast_enough() -> None:
    assert is_reached({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.5})
    assert not is_reached({"a": 1.0, "b": 2.6}, {"a": 1.0, "b": 2.5})


def test_without_a_target_nothing_is_fast_enough() -> None:
    assert not is_reached({"a": 0.0}, {})


shards = st.lists(
    st.lists(st.tuples(st.floats(0.01, 100), st.integers(1, 9)), max_size=4), min_size=1, max_size=5
)


@given(shards, st.floats(0.1, 50))
def test_the_parts_of_all_shards_are_the_target(
    case: list[list[tuple[float, int]]], target_ms: float
) -> None:
    tasks = [
        [timed(f"{shard}-{i}", ms, weight) for i, (ms, weight) in enumerate(row)]
        for shard, row in enumerate(case)
    ]
    parts = parts_of_target(tasks, target_ms)
    assert len(parts) == len(case)
    if any(case):
        total = sum(part for shard in parts for part in shard.values())
        assert total == pytest.approx(target_ms)
    for mine, part in zip(tasks, parts, strict=True):
        assert set(part) == set(model_ms(mine))


BASE: ModelSide = ("m", "base")
HEAD: ModelSide = ("m", "head")
BATCH = 8


def state(
    *sides: ModelSide,
    trials: int = 0,
    ms: float = 1.0,
    in_flight: int = 0,
    exhausted: bool = False,
) -> TaskState:
    batch = MeasuredBatch(trials=trials, seconds=1.0, best_ms=ms)
    return TaskState(
        weight=1,
        prior_ms=ms,
        history=(batch,) if trials else (),
        in_flight=in_flight,
        exhausted=exhausted,
        sides=sides,
    )


def served(*states: TaskState) -> list[int]:
    every = range(len(states))
    return evenly_served(states, every, every, BATCH)


def test_a_side_that_is_a_batch_ahead_waits() -> None:
    assert served(state(BASE, trials=16), state(HEAD, trials=8)) == [1]
    assert served(state(BASE, trials=15), state(HEAD, trials=8)) == [0, 1]


def test_candidates_that_are_out_count() -> None:
    assert served(state(BASE, trials=8), state(HEAD, trials=8, in_flight=8)) == [0]


def test_several_tasks_of_a_side_count_by_their_share_of_its_time() -> None:
    small = state(HEAD, ms=0.001)
    assert served(state(BASE, trials=16), state(HEAD, trials=8, ms=5.0), small) == [1, 2]
    assert served(state(BASE, trials=16), state(HEAD, trials=16, ms=5.0), small) == [0, 1, 2]


def test_nobody_waits_for_a_side_that_has_nothing_left_to_search() -> None:
    assert evenly_served([state(BASE, trials=64), state(HEAD)], [0], [0], BATCH) == [0]
    ended = state(HEAD, trials=8, exhausted=True)
    assert evenly_served([state(BASE, trials=64), ended], [0], [0], BATCH) == [0]


def test_models_are_compared_by_themselves_and_a_new_one_with_nothing() -> None:
    other: ModelSide = ("n", "head")
    assert served(state(BASE, trials=64), state(other)) == [0, 1]


def test_what_waits_for_each_other_goes_on_where_nothing_is_out() -> None:
    crossed = [
        state(BASE, ("n", "head"), trials=64),
        state(HEAD, trials=8),
        state(("n", "base"), trials=8),
    ]
    assert evenly_served(crossed, [0], [0, 1, 2], BATCH) == [0]
    pending = [*crossed[:2], state(("n", "base"), trials=8, in_flight=8)]
    assert evenly_served(pending, [0], [0, 1, 2], BATCH) == []


@given(st.floats(1.0, 20.0), st.floats(1.0, 20.0), st.floats(0.9, 0.99), st.floats(0.9, 0.99))
def test_one_changed_layer_gets_the_same_trials_on_both_sides(
    base_ms: float, head_ms: float, base_gain: float, head_gain: float
) -> None:
    """Whichever of the two is larger, or easier to improve."""
    best_ms, gains = [base_ms, head_ms], [base_gain, head_gain]
    states = [state(BASE, ms=base_ms), state(HEAD, ms=head_ms)]
    for _ in range(16):
        choice = choose(states, RemainingBudget(trials=1000, seconds=1000.0))
        assert choice is not None
        at = choice.index
        best_ms[at] *= gains[at]
        states[at] = after_a_batch(states[at], choice.candidates, best_ms[at])
        trials = [each.trials for each in states]
        assert abs(trials[0] - trials[1]) <= BATCH


def after_a_batch(before: TaskState, trials: int, best_ms: float) -> TaskState:
    batch = MeasuredBatch(trials=trials, seconds=trials * 0.4, best_ms=best_ms)
    return with_history(before, (*before.history, batch), best_ms)


def with_history(before: TaskState, history: Sequence[MeasuredBatch], best_ms: float) -> TaskState:
    return TaskState(
        weight=before.weight,
        prior_ms=before.prior_ms,
        best_ms=best_ms,
        history=tuple(history),
        sides=before.sides,
    )
