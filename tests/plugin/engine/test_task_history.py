from __future__ import annotations

from tests.plugin.engine.test_batches import candidate, ledger, measured
from tunegate.engine.protocol import Measured
from tunegate.engine.task_history import TaskLedger


def timed(number: int, nanoseconds: int) -> Measured:
    return Measured(number=number, status="ok", nanoseconds=(nanoseconds,))


def test_the_best_of_what_ran_is_the_outcome() -> None:
    task = ledger()
    task.is_started = True
    task.enter(candidate(task, 0), timed(0, 9000), 5)
    three, one, two = [task.enter(candidate(task, n), measured(n), 5) for n in (3, 1, 2)]
    found = task.outcome(task.stopped("budget"))
    assert found.records[:3] == (one, two, three)
    assert (found.trials, found.stopped, found.source) == (3, "budget", "search")
    assert (found.before_ms, found.best_ms) == (0.009, 0.001001)


def test_borrowed_schedules_that_do_not_fit_are_counted_and_fail_no_task() -> None:
    task = ledger()
    task.is_started = True
    task.note_proposal(0.5, misfits=2)
    assert task.stopped("budget") == "not-started"
    found = task.outcome("budget")
    assert (found.failures, found.search_seconds, found.trials) == ({"misfit": 2}, 0.5, 0)


def test_where_all_fit_no_misfits_are_told() -> None:
    task = ledger()
    task.note_proposal(0.5, misfits=0)
    assert task.outcome("budget").failures == {}


def test_a_default_schedule_that_is_near_is_measured_again_with_the_best() -> None:
    """Of two looks at equal schedules the luckier one is the faster."""
    task = ledger()
    task.is_started = True
    task.enter(candidate(task, 0), timed(0, 1200), 5)
    for number in (1, 2, 3, 4, 5):
        task.enter(candidate(task, number), timed(number, 1000 + number), 5)
    task.note_batch(5, 1.0)
    again = task.contenders()
    assert [each.number for each in again] == [1, 2, 0]
    for each, nanoseconds in zip(again, (1300, 1250, 1200), strict=True):
        task.confirm(each, timed(each.number, nanoseconds), 6)
    found = task.outcome("budget")
    assert (found.source, found.before_ms, found.best_ms) == ("default", 0.0012, 0.0012)


def test_a_default_schedule_that_is_far_behind_is_not() -> None:
    task = ledger()
    task.enter(candidate(task, 0), timed(0, 9000), 5)
    task.enter(candidate(task, 1), timed(1, 1000), 5)
    assert [each.number for each in task.contenders()] == [1, 0]
    for number in (2, 3):
        task.enter(candidate(task, number), timed(number, 1000 + number), 5)
    assert [each.number for each in task.contenders()] == [1, 2]


def test_of_many_alike_those_that_may_have_been_ahead_are_measured_again() -> None:
    task = ledger()
    for number in range(1, 129):
        task.enter(candidate(task, number), timed(number, 1000 + 20 * number), 5)
    task.note_batch(128, 1.0)
    assert [each.number for each in task.contenders()] == [1, 2, 3, 4]
    assert task.rivals() == []
    for each, nanoseconds in zip(task.contenders(), (1400, 1200, 1190, 1210), strict=True):
        task.confirm(each, timed(each.number, nanoseconds), 6)
    assert [each.number for each in task.rivals()] == [3, 2, 4]


def ledger_of_two() -> TaskLedger:
    """The second of them takes twice as long."""
    task = ledger()
    for number in (1, 2):
        task.enter(candidate(task, number), timed(number, 100 * number), 5)
    return task


def test_what_is_measured_in_two_passes_has_the_times_of_both() -> None:
    task = ledger_of_two()
    one, _ = task.contenders()
    task.confirm(one, timed(one.number, 3000), 6)
    record = task.confirm(one, timed(one.number, 1000), 7)
    assert record.run_nanoseconds == (3000, 1000)
    assert record.median_ms == 0.002
    assert task.outcome("budget").best_ms == 0.002


def test_one_that_fails_when_it_is_measured_again_is_no_winner() -> None:
    task = ledger_of_two()
    one, two = task.contenders()
    task.confirm(two, timed(two.number, 210), 6)
    task.confirm(one, timed(one.number, 110), 6)
    task.confirm(one, Measured(number=one.number, status="wrong"), 7)
    assert task.outcome("budget").best_ms == 0.00021
