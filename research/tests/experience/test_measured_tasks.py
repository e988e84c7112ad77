from __future__ import annotations

import msgspec
from tests.support.tuning_tasks import make_record, make_task
from tests.tune.test_prior import SKETCH

from research.experience.measured_tasks import MIN_ROWS, MeasuredTasks, TaskIdentity
from tunegate.tune.prior import Sketch
from tunegate_cache.format.records import TuningRecord

TASK = make_task()
IDENTITY = TaskIdentity("name", "convolution", "0123456789abcdef", ("m",), threads=1)
SKETCHES = {"f" * 64: Sketch("direct", None), "7" * 64: SKETCH}


def record(number: int, milliseconds: float = 1.0) -> TuningRecord:
    made = make_record(milliseconds=milliseconds)
    return msgspec.structs.replace(made, decisions=((3, (number, 4)), (5, (1,))))


def test_a_line_has_the_sketch_the_time_and_the_decisions_of_each_candidate() -> None:
    tasks = MeasuredTasks()
    tasks.describe(TASK.key.workload, SKETCHES)
    tasks.enter([record(number, 1.23456) for number in range(MIN_ROWS)])
    found = tasks.experience(TASK, IDENTITY)
    assert found is not None
    assert found.rows[7] == (1, 1.235, ((7, 4), (1,)))
    assert found.sketches == tuple(SKETCHES.values())
    assert (found.kind, found.layer, found.models) == IDENTITY[1:4]
    assert (found.device, found.threads) == ("a machine", 1)
    assert found.workload == TASK.key.workload


def test_a_confirmed_time_replaces_the_quick_one() -> None:
    tasks = MeasuredTasks()
    tasks.describe(TASK.key.workload, SKETCHES)
    tasks.enter([record(number) for number in range(MIN_ROWS)])
    tasks.enter([record(0, 3.0)])
    found = tasks.experience(TASK, IDENTITY)
    assert found is not None
    assert (len(found.rows), found.rows[0][1]) == (MIN_ROWS, 3.0)


def test_failures_and_default_schedules_have_no_row() -> None:
    tasks = MeasuredTasks()
    tasks.describe(TASK.key.workload, SKETCHES)
    failed = msgspec.structs.replace(record(98), status="timeout", run_nanoseconds=())
    default = msgspec.structs.replace(record(99), template="", decisions=())
    tasks.enter([*(record(number) for number in range(MIN_ROWS)), failed, default])
    found = tasks.experience(TASK, IDENTITY)
    assert found is not None
    assert len(found.rows) == MIN_ROWS


def test_few_rows_or_no_loop_nest_make_no_line() -> None:
    few, bare = MeasuredTasks(), MeasuredTasks()
    few.describe(TASK.key.workload, SKETCHES)
    few.enter([record(number) for number in range(MIN_ROWS - 1)])
    bare.describe(TASK.key.workload, {"7" * 64: Sketch("direct", None)})
    bare.enter([record(number) for number in range(MIN_ROWS)])
    assert few.experience(TASK, IDENTITY) is None
    assert bare.experience(TASK, IDENTITY) is None
    assert MeasuredTasks().experience(TASK, IDENTITY) is None
