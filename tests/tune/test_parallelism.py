from __future__ import annotations

from tunegate.tune.parallel_measurement import CheckedBatch, Parallelism
from tunegate.tune.protocol import Measured

TASK, OTHER = "a", "b"


def batch(waited_seconds: float) -> list[Measured]:
    return [
        Measured(
            number=n,
            status="ok",
            nanoseconds=(1,),
            build_seconds=0.4,
            run_seconds=0.1 + waited_seconds,
            waited_seconds=waited_seconds,
        )
        for n in range(8)
    ]


def test_where_nobody_waits_for_the_device_each_has_it_alone() -> None:
    mine = Parallelism(slots=16)
    mine.note_alone(TASK, batch(0.01))
    assert mine.at_once(TASK) == 1
    assert mine.notes() == ()


def test_where_many_wait_more_are_let_in() -> None:
    mine = Parallelism(slots=16)
    mine.note_alone(TASK, batch(0.3))
    assert mine.at_once(TASK) == 9


def test_a_device_with_one_slot_stays_with_one() -> None:
    mine = Parallelism(slots=1)
    mine.note_alone(TASK, batch(3.0))
    assert mine.at_once(TASK) == 1


def test_times_that_are_off_bring_it_down_again_and_the_report_says_so() -> None:
    mine = Parallelism(slots=16, first=8)
    mine.note_beside(TASK, CheckedBatch((), error=0.12, failures=0))
    assert mine.at_once(TASK) == 7
    (note,) = mine.notes()
    assert note.startswith("up to 8 candidates were timed at once")
    assert "off by 12.0% on average" in note


def test_each_task_has_its_own_and_begins_where_the_last_one_stands() -> None:
    mine = Parallelism(slots=16, first=4)
    mine.note_beside(TASK, CheckedBatch((), error=0.01, failures=0))
    grown = mine.at_once(TASK)
    assert mine.at_once(OTHER) == grown > 4
    mine.note_beside(OTHER, CheckedBatch((), error=0.2, failures=0))
    assert mine.at_once(OTHER) < grown
    assert mine.at_once(TASK) == grown
