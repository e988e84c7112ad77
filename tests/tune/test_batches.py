from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.plans import MISS, plan_of
from tests.support.tuning_tasks import make_outcome, make_planned, make_record, make_task
from tests.tune.test_next_task import state
from tunegate.config import BudgetConfig
from tunegate.tune.batches import OpenBatches
from tunegate.tune.expected_time import answers_next_run
from tunegate.tune.next_task import DEFAULT_POLICY, Choice, RemainingBudget, fewest_trials
from tunegate.tune.protocol import Candidate, Measured, Schedule
from tunegate.tune.task_history import Prediction, TaskHistory, disagrees, is_enough
from tunegate_cache.format.records import (
    Decision,
    DeviceFingerprint,
    Provenance,
    Toolchain,
    TuningRecord,
)

DEVICE = DeviceFingerprint(name="here", kind="cpu", units=1, memory_bytes=1)


def history() -> TaskHistory:
    return TaskHistory(
        make_planned(make_task("a")),
        device=DEVICE,
        toolchain=Toolchain(tvm="1", ffi="1"),
        source=Provenance(),
    )


def candidate(task: TaskHistory, number: int) -> Candidate:
    decision: Decision = (1, (number,))
    return Candidate(
        number=number,
        workload=task.workload,
        origin="default" if number == 0 else "search",
        schedule=Schedule("", ()) if number == 0 else Schedule("t", (decision,)),
        module="",
        arguments=(),
    )


def measured(number: int) -> Measured:
    return Measured(number=number, status="ok", nanoseconds=(1000 + number,), run_seconds=0.1)


def test_a_batch_is_back_with_its_last_candidate() -> None:
    task = history()
    batches = OpenBatches([task.workload])
    candidates = [candidate(task, n) for n in range(3)]
    batches.start(task, candidates)
    assert batches.in_flight(task.workload) == 3
    back = [batches.come_back(c, measured(c.number), 5).is_back for c in candidates]
    assert back == [False, False, True]
    assert (task.trials, batches.in_flight(task.workload)) == (2, 0)


def test_what_the_default_schedule_took_stands_apart() -> None:
    task = history()
    batches = OpenBatches([task.workload])
    candidates = [candidate(task, n) for n in range(3)]
    batches.start(task, candidates)
    *_, batch = [batches.come_back(each, measured(each.number), 5) for each in candidates]
    assert (batch.default_seconds, batch.seconds) == (0.1, 0.2)


def test_what_was_timed_beside_others_is_no_result_before_it_is_checked() -> None:
    task = history()
    batches = OpenBatches([task.workload])
    candidates = [candidate(task, n) for n in range(3)]
    batches.start(task, candidates, at_once=2)
    *_, batch = [batches.come_back(each, measured(each.number), 5) for each in candidates]
    assert (task.trials, batches.to_learn(task.workload)) == (0, ())
    assert batches.in_flight(task.workload) == 3
    assert batches.check(batch, [1]) == [candidates[1]]
    assert (batches.in_flight(task.workload), batch.is_back) == (3, False)
    assert batches.come_back(candidates[1], measured(1), 6).is_back
    assert batches.in_flight(task.workload) == 3
    batches.settle(batch, [measured(n) for n in range(3)], 7)
    assert (task.trials, len(batch.records), batch.trials) == (2, 3, 2)
    assert batches.in_flight(task.workload) == 0
    batches.close(batch)
    assert batches.take_unpublished() == []


def test_a_check_that_is_given_up_leaves_its_candidate_a_trial() -> None:
    task = history()
    batches = OpenBatches([task.workload])
    candidates = [candidate(task, n) for n in range(1, 3)]
    batches.start(task, candidates, at_once=2)
    *_, batch = [batches.come_back(each, measured(each.number), 5) for each in candidates]
    batches.check(batch, [1])
    assert batches.give_up(candidates[0]).trials == 2


def test_every_result_is_learned_once() -> None:
    task = history()
    batches = OpenBatches([task.workload])
    candidates = [candidate(task, n) for n in range(2)]
    batches.start(task, candidates)
    batches.come_back(candidates[1], measured(1), 5)
    assert [result.number for result in batches.to_learn(task.workload)] == [1]
    assert batches.to_learn(task.workload) == ()


def test_what_is_given_up_is_no_trial() -> None:
    task = history()
    batches = OpenBatches([task.workload])
    candidates = [candidate(task, n) for n in range(3)]
    batches.start(task, candidates)
    batches.come_back(candidates[0], measured(0), 5)
    batches.give_up(candidates[1])
    batch = batches.give_up(candidates[2])
    assert (batch.is_back, batch.trials, batches.in_flight(task.workload)) == (True, 0, 0)


def test_records_of_an_unfinished_batch_are_not_forgotten() -> None:
    task = history()
    batches = OpenBatches([task.workload])
    candidates = [candidate(task, n) for n in range(3)]
    batches.start(task, candidates)
    batches.come_back(candidates[1], measured(1), 5)
    assert [r.run_nanoseconds for r in batches.take_unpublished()] == [(1001,)]
    assert batches.take_unpublished() == []


# A task of few trials ends with them, unless they contradict what was expected.

AS_EXPECTED = [Prediction(expected, 1 / expected) for expected in (0.2, 0.4, 0.6, 0.8)]
CONTRADICTED = [Prediction(1 - expected, ms) for expected, ms in AS_EXPECTED]


def test_one_batch_is_enough_where_it_bears_out_what_was_expected() -> None:
    assert is_enough(8, 8, AS_EXPECTED)


def test_it_is_never_enough_before_the_last_trial() -> None:
    assert not is_enough(7, 8, AS_EXPECTED)


def test_a_search_goes_on_where_the_model_was_wrong() -> None:
    assert not is_enough(8, 8, CONTRADICTED)


def test_of_few_candidates_ranks_say_nothing() -> None:
    assert not disagrees(CONTRADICTED[:3])


def test_where_all_are_expected_to_be_alike_nothing_is_contradicted() -> None:
    assert not disagrees([Prediction(0.5, ms) for ms in (1.0, 2.0, 3.0, 4.0, 5.0)])


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 100)), min_size=4, max_size=20))
def test_what_is_contradicted_is_borne_out_the_other_way_round(
    pairs: list[tuple[float, float]],
) -> None:
    predictions = [Prediction(*pair) for pair in pairs]
    mirrored = [Prediction(-expected, ms) for expected, ms in predictions]
    assert not (disagrees(predictions) and disagrees(mirrored))


def test_no_task_is_planned_more_than_its_own_limit() -> None:
    budget = BudgetConfig(trials=600, trials_per_task=8)
    (shard,) = plan_of([make_task("a"), make_task("b")], [MISS] * 2, budget=budget).shards
    assert {task.trials for task in shard.tasks} | {shard.budget.trials_per_task} == {8}


LEFT = RemainingBudget(trials=None, seconds=None)
FRESH, ONE, TWO = state(1.0), state(1.0, 0.5), state(9.0, 0.5, 0.4)


def test_the_task_with_the_fewest_trials_is_next_whatever_it_promises() -> None:
    assert fewest_trials((TWO, ONE, FRESH), LEFT) == Choice(2, DEFAULT_POLICY.batch)
    assert fewest_trials((TWO, ONE), LEFT) == Choice(1, DEFAULT_POLICY.batch)


def test_a_batch_is_no_larger_than_what_is_left() -> None:
    assert fewest_trials((FRESH,), RemainingBudget(trials=3, seconds=9.0)) == Choice(0, 3)


def test_nobody_is_next_without_a_budget_or_a_task_that_is_free() -> None:
    busy = msgspec.structs.replace(FRESH, is_searching=True)
    waiting = msgspec.structs.replace(FRESH, in_flight=DEFAULT_POLICY.batch)
    done = msgspec.structs.replace(FRESH, exhausted=True)
    assert fewest_trials((FRESH,), RemainingBudget(trials=0, seconds=None)) is None
    assert fewest_trials((FRESH,), RemainingBudget(trials=None, seconds=0.0)) is None
    assert fewest_trials((busy, waiting, done), LEFT) is None


@pytest.mark.parametrize(
    ("records", "is_answer"),
    [
        ((), False),
        ((make_record("a", times=3),), False),
        ((make_record("a"),), True),
        ((make_record("other"),), False),
    ],
)
def test_only_its_own_confirmed_record_is_an_answer(
    records: tuple[TuningRecord, ...], is_answer: bool
) -> None:
    assert answers_next_run(make_outcome("a", records=records)) == is_answer
