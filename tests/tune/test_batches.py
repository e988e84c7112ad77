from __future__ import annotations

from tests.support.tuning_tasks import make_planned, make_task
from tunegate.tune.batches import OpenBatches
from tunegate.tune.protocol import Candidate, Measured, Schedule
from tunegate.tune.task_history import TaskHistory
from tunegate_cache.format.records import Decision, DeviceFingerprint, Provenance, Toolchain

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
