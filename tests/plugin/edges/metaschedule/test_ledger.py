from __future__ import annotations

from tests.plugin.edges.metaschedule.test_batches import candidate, ledger, measured
from tunegate.edges.metaschedule.messages import Measured


def test_the_best_of_what_ran_is_the_outcome() -> None:
    task = ledger()
    task.is_started = True
    default = Measured(number=0, status="ok", nanoseconds=(9000,))
    task.enter(candidate(task, 0), default, 5)
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
