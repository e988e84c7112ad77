"""Merging outcomes: in any order, any number of times, and nothing is lost."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_tasks import DEVICE, make_outcome, make_record
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import Cost
from tunegate.tune.outcomes import merge_outcomes

NAMES = ("a", "b", "c")


def attempt(*tasks: TaskOutcome, shard: int = 0, seconds: float = 10.0) -> TuningOutcome:
    return TuningOutcome(
        shard=shard,
        target="cpu",
        tasks=tasks,
        spent=Cost(seconds=seconds),
        device=DEVICE,
        stopped="finished",
    )


times = st.none() | st.floats(0.1, 10)
task_outcomes = st.builds(
    lambda name, best_ms, trials, at: make_outcome(
        name, best_ms=best_ms, trials=trials, records=(make_record(name, at=at),)
    ),
    st.sampled_from(NAMES),
    times,
    st.integers(0, 3),
    st.integers(1, 3),
)
attempts = st.lists(
    st.builds(
        lambda tasks, shard, seconds: attempt(*tasks, shard=shard, seconds=seconds),
        st.lists(task_outcomes, max_size=3, unique_by=lambda task: task.name),
        st.integers(0, 2),
        st.sampled_from([1.0, 2.0]),
    ),
    max_size=6,
)


@given(attempts, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(outcomes: list[TuningOutcome], random: Random) -> None:
    shuffled = list(outcomes)
    random.shuffle(shuffled)
    assert merge_outcomes(shuffled) == merge_outcomes(outcomes)


@given(attempts)
def test_the_same_outcome_twice_changes_nothing(outcomes: list[TuningOutcome]) -> None:
    assert merge_outcomes([*outcomes, *outcomes]) == merge_outcomes(outcomes)


@given(attempts, attempts)
def test_what_is_merged_can_be_merged_again(
    some: list[TuningOutcome], others: list[TuningOutcome]
) -> None:
    assert merge_outcomes([*merge_outcomes(some), *others]) == merge_outcomes([*some, *others])


@given(attempts)
def test_no_task_and_no_record_is_lost(outcomes: list[TuningOutcome]) -> None:
    def records(of: tuple[TuningOutcome, ...]) -> set[object]:
        return {(o.shard, record) for o in of for task in o.tasks for record in task.records}

    assert records(merge_outcomes(outcomes)) == records(tuple(outcomes))


def test_each_task_has_the_best_of_all_attempts() -> None:
    first = attempt(make_outcome("a", best_ms=2.0), make_outcome("b", best_ms=5.0))
    second = attempt(make_outcome("a", best_ms=3.0), make_outcome("b", best_ms=4.0), seconds=20.0)
    (merged,) = merge_outcomes([first, second])
    assert {task.name: task.best_ms for task in merged.tasks} == {"a": 2.0, "b": 4.0}
    assert merged.spent.seconds == 20.0


def test_shards_stay_apart() -> None:
    assert [o.shard for o in merge_outcomes([attempt(shard=1), attempt(shard=0)])] == [0, 1]
