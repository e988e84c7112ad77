"""Who gets the next batch: breadth first, then by gain per second, then nobody."""

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.present import present
from tunegate.tune.improvement import INFORMED, MeasuredBatch, TaskState
from tunegate.tune.next_task import FIRST_ROUND_SECONDS, Choice, RemainingBudget, choose


def state(
    now_ms: float,
    *best_ms: float,
    weight: int = 1,
    headroom: float = 0.9,
    in_flight: int = 0,
    exhausted: bool = False,
) -> TaskState:
    return TaskState(
        weight=weight,
        prior_ms=now_ms,
        headroom=headroom,
        best_ms=best_ms[-1] if best_ms else None,
        history=tuple(MeasuredBatch(trials=16, seconds=8.0, best_ms=ms) for ms in best_ms),
        in_flight=in_flight,
        exhausted=exhausted,
    )


def next_choice(
    states: Sequence[TaskState], *, trials: int | None = 10_000, seconds: float | None = 3600.0
) -> Choice | None:
    return choose(states, RemainingBudget(trials=trials, seconds=seconds))


def index_of(states: Sequence[TaskState], **left: float) -> int | None:
    choice = next_choice(states, **left)  # type: ignore[arg-type]  # trials is whole where it is given
    return None if choice is None else choice.index


def test_every_task_that_matters_gets_a_batch_before_any_gets_a_second() -> None:
    served: list[int] = []
    states = [state(ms) for ms in (8.0, 1.0, 4.0, 2.0)]
    for _ in range(4):
        choice = present(next_choice(states))
        served.append(choice.index)
        states[choice.index] = state(states[choice.index].prior_ms, 0.5)
    assert served == [0, 2, 3, 1]


def test_first_batches_shrink_when_the_time_would_not_reach_all() -> None:
    assert next_choice([state(1) for _ in range(10)], seconds=30.0) == Choice(0, 3)


@given(st.integers(1, 60), st.floats(0.01, 5.0), st.floats(0.01, 2.0), st.floats(0.0, 20.0))
def test_every_task_has_been_asked_for_in_time_or_with_one_candidate(
    tasks: int, default_seconds: float, seconds_each: float, start: float
) -> None:
    states, spent = [state(1) for _ in range(tasks)], start
    for number in range(tasks):
        choice = present(choose(states, RemainingBudget(spent_seconds=spent)))
        assert choice.index == number
        seconds = choice.candidates * seconds_each
        spent += seconds + default_seconds
        batch = MeasuredBatch(
            trials=choice.candidates, seconds=seconds, best_ms=1.0, default_seconds=default_seconds
        )
        states[number] = replace(states[number], best_ms=1.0, history=(batch,))
    # The first batch is sized by a guess, and one candidate for each may already be too many.
    least = start + tasks * (default_seconds + seconds_each)
    assert spent <= max(FIRST_ROUND_SECONDS, least) + 8 * seconds_each


def test_what_is_believed_to_be_small_gets_a_look_when_that_is_cheap() -> None:
    states = [state(100, 50), state(0.001)]
    assert next_choice(states) == Choice(1, 2)
    assert index_of(states, seconds=9.0) == 0


def test_a_choice_among_thousands_of_tasks_is_made_at_once() -> None:
    started = time.process_time()
    next_choice([state(1) for _ in range(4_000)], seconds=600.0)
    assert time.process_time() - started < 2.0


def test_a_plateaued_task_is_parked_while_another_is_worth_a_batch() -> None:
    assert index_of([state(100, 90, 80, 80, 80, 80, weight=3), state(20, 19, 18)]) == 1


def test_the_search_has_converged_when_no_batch_is_worth_its_seconds() -> None:
    done = state(10, *[5.0] * 30)
    slow = replace(done, history=tuple(replace(b, seconds=600.0) for b in done.history))
    assert next_choice([slow]) is None


@pytest.mark.parametrize("seconds", [0.05, 0.2, 1.0])
def test_a_task_that_nothing_improves_ends_long_before_one_that_does(seconds: float) -> None:
    """Whatever a candidate takes, for the gain is asked by time: the curve alone would go on for
    six minutes."""

    def spend(*, improves_until: float) -> float:
        at, tuned = 0.0, TaskState(weight=1, prior_ms=1.0, pace=INFORMED, flops=1e6)
        while choice := choose([tuned], RemainingBudget(spent_seconds=at)):
            took = choice.candidates * seconds
            at += took
            better = 0.95 if at <= improves_until else 1.0
            batch = MeasuredBatch(
                trials=choice.candidates, seconds=took, best_ms=(tuned.best_ms or 1.0) * better
            )
            tuned = replace(tuned, best_ms=batch.best_ms, history=(*tuned.history, batch))
        return at

    nothing = spend(improves_until=0.0)
    assert nothing < 120
    assert spend(improves_until=60.0) > 60 + nothing / 2


def test_a_task_waits_for_the_results_of_its_batch() -> None:
    assert next_choice([state(10, in_flight=8)]) is None
    assert next_choice([state(10, 9, in_flight=16)]) is None


def test_nothing_is_chosen_of_a_spent_budget() -> None:
    assert next_choice([state(1)], trials=0) is None
    assert next_choice([state(1)], seconds=0.0) is None


def test_exact_hits_and_exhausted_tasks_are_left_alone() -> None:
    assert next_choice([state(1, headroom=0.0), state(1, exhausted=True)]) is None


def test_a_batch_near_the_end_is_no_longer_than_the_time_left() -> None:
    assert next_choice([state(10, 9)], seconds=2.0) == Choice(0, 4)


states_of_any_kind = st.lists(
    st.builds(
        lambda ms, times, weight, headroom, flight, done: state(
            ms,
            *sorted(times, reverse=True),
            weight=weight,
            headroom=headroom,
            in_flight=flight,
            exhausted=done,
        ),
        st.floats(0.001, 1e4),
        st.lists(st.floats(0.001, 1e4), max_size=8),
        st.integers(1, 20),
        st.floats(0, 1),
        st.integers(0, 16),
        st.booleans(),
    ),
    max_size=12,
)


@given(states_of_any_kind, st.none() | st.integers(0, 500), st.none() | st.floats(0, 1e4))
def test_a_choice_is_open_and_within_the_trials(
    states: list[TaskState], trials: int | None, seconds: float | None
) -> None:
    choice = next_choice(states, trials=trials, seconds=seconds)
    if choice is None:
        return
    assert choice.candidates >= 1
    assert trials is None or choice.candidates <= trials
    assert not states[choice.index].exhausted
    assert states[choice.index].headroom > 0


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=8), st.integers(1, 400))
def test_a_search_ends_within_its_trials(times: list[float], trials: int) -> None:
    states, left = [state(ms) for ms in times], trials
    while (choice := next_choice(states, trials=left, seconds=None)) is not None:
        left -= choice.candidates
        chosen = states[choice.index]
        best_ms = 0.95 * (chosen.best_ms or chosen.prior_ms)
        batch = MeasuredBatch(trials=choice.candidates, seconds=1.0, best_ms=best_ms)
        states[choice.index] = replace(chosen, best_ms=best_ms, history=(*chosen.history, batch))
    assert left >= 0
