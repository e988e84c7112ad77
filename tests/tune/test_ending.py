"""How a shard's tuning ended."""

from __future__ import annotations

import pytest

from tests.support.tuning_tasks import exact, key_of, make_outcome, make_planned, make_task
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import Budget
from tunegate.tune.budget import Spending
from tunegate.tune.tune_shard import final_outcomes, why_ended

A_MINUTE = Budget(seconds=60, trials=100)


def ended(*tasks: TaskOutcome, seconds: float = 30, trials: int = 10) -> str:
    return why_ended(tasks, Spending(budget=A_MINUTE, seconds=seconds, trials=trials))


def test_every_planned_task_has_an_outcome_in_the_plans_order() -> None:
    planned = [make_planned(make_task(name)) for name in ("a", "b", "c")]
    outcomes = final_outcomes(planned, {key_of("b"): make_outcome("b")}, is_cancelled=False)
    assert [(o.name, o.stopped) for o in outcomes] == [
        ("a", "not-started"),
        ("b", "converged"),
        ("c", "not-started"),
    ]


def test_an_exact_hit_ends_with_its_records_and_time() -> None:
    planned = make_planned(make_task("a"), exact("a", milliseconds=2.5), trials=0)
    (outcome,) = final_outcomes([planned], {}, is_cancelled=False)
    assert (outcome.source, outcome.stopped, outcome.best_ms) == ("exact", "exact", 2.5)
    assert outcome.records == exact("a", milliseconds=2.5).records


def test_what_was_begun_when_cancelled_is_cancelled_and_keeps_its_best() -> None:
    planned = [make_planned(make_task(name)) for name in ("a", "b")]
    under_way = {key_of("a"): make_outcome("a", stopped="finished")}
    first, second = final_outcomes(planned, under_way, is_cancelled=True)
    assert (first.stopped, first.best_ms) == ("cancelled", 1.0)
    assert second.stopped == "not-started"


@pytest.mark.parametrize(
    ("seconds", "trials", "limit"),
    [(60.1, 10, "seconds"), (10, 100, "trials"), (58, 10, "seconds"), (10, 97, "trials")],
)
def test_a_run_cut_short_names_the_limit_it_reached_or_was_near(
    seconds: float, trials: int, limit: str
) -> None:
    assert ended(make_outcome(stopped="budget"), seconds=seconds, trials=trials) == limit


def test_a_run_in_which_tasks_were_never_reached_ended_at_its_limit() -> None:
    untouched = make_outcome("b", stopped="not-started", trials=0)
    assert ended(make_outcome("a"), untouched, seconds=61) == "seconds"
    assert ended(make_outcome("a"), untouched, seconds=10) == "converged"


@pytest.mark.parametrize(("seconds", "reason"), [(55, "seconds"), (3, "finished")])
def test_a_run_that_measured_nothing_in_most_of_its_time_had_too_little_of_it(
    seconds: float, reason: str
) -> None:
    untouched = make_outcome("b", stopped="not-started", trials=0)
    assert ended(untouched, seconds=seconds, trials=0) == reason


def test_a_run_that_stopped_paying_is_told_from_one_with_nothing_more_to_try() -> None:
    tried_all = make_outcome("a", stopped="finished")
    assert ended(tried_all) == "finished"
    assert ended(tried_all, make_outcome("b", stopped="converged")) == "converged"


def test_a_run_in_which_nothing_ever_ran_failed() -> None:
    failed = make_outcome("a", stopped="failed", best_ms=None)
    assert ended(failed) == "failed"
    assert ended(failed, make_outcome("b")) == "converged"


def test_a_run_that_only_the_cache_served_is_finished() -> None:
    assert ended(make_outcome("a", stopped="exact", trials=0)) == "finished"
