"""Costs of candidates, by the reason that they were tried for."""

import pytest
from msgspec.structs import replace

from tests.support.outcome_parts import outcome
from tests.support.plans import plan_of
from tests.support.tuning_tasks import make_shard
from tunegate.artifacts.outcomes import CandidateCost, TuningOutcome
from tunegate.artifacts.plans import Budget, Cost, TuningPlan
from tunegate.report.cost_table import FilterAudit, Saving, audit, savings, spending
from tunegate.report.markdown import markdown_table
from tunegate.report.report_tables import spending_table


def cost(**fields: object) -> CandidateCost:
    usual = {
        "stage": "quick",
        "origin": "search",
        "pick": "predicted",
        "status": "ok",
        "build_seconds": 0.2,
        "run_seconds": 0.1,
        "milliseconds": 2.0,
        "improved": False,
    }
    return CandidateCost(**(usual | fields))  # type: ignore[arg-type]  # a builder


def with_costs(*costs: CandidateCost, usd: float | None = None) -> TuningOutcome:
    made = outcome(spent=Cost(seconds=1.0, usd=usd))
    (first, *rest) = made.tasks
    tasks = [replace(first, costs=costs, search_seconds=0.3)]
    tasks += [replace(task, costs=(), search_seconds=0.0) for task in rest]
    return replace(made, tasks=tuple(tasks))


def test_every_second_is_in_one_row() -> None:
    made = with_costs(
        cost(improved=True),
        cost(),
        cost(status="compile", milliseconds=None),
        cost(stage="confirm"),
        usd=1.5,
    )
    rows = spending([made])
    assert [row.candidates for row in rows] == [1, 1, 1, 1, None]
    assert [row.seconds for row in rows] == pytest.approx([0.3] * 5)
    assert [row.share for row in rows] == pytest.approx([0.2] * 5)
    assert [row.usd for row in rows] == pytest.approx([0.3] * 5)


def test_a_rejected_candidate_near_the_best_was_rejected_wrongly() -> None:
    made = with_costs(
        cost(milliseconds=1.0),
        cost(pick="audit", milliseconds=1.01),
        cost(pick="audit", milliseconds=1.5),
        cost(pick="audit", milliseconds=None, status="timeout"),
        cost(pick="audit", stage="confirm", milliseconds=1.0),
    )
    assert audit([made]) == FilterAudit(audited=3, wrong=1)


def test_joules_are_shared_like_the_bill() -> None:
    made = replace(with_costs(cost()), spent=Cost(seconds=1.0, joules=60.0, energy_source="rapl"))
    rows = spending([made])
    assert [row.joules for row in rows] == pytest.approx([0.0, 30.0, 0.0, 0.0, 30.0])
    assert "30\xa0J" in markdown_table(spending_table(rows))
    assert "Energy" not in markdown_table(spending_table(spending([with_costs(cost())])))


# What the cache and the filter saved.

SPENT = Cost(seconds=20.0, usd=2.0, joules=1000.0, energy_source="rapl")


def planned(seconds: float | None, saved: Cost | None = None) -> TuningPlan:
    shard = make_shard(budget=Budget(seconds=seconds, trials=None))
    return replace(plan_of([]), shards=(shard,), saved=saved)


def ended(stopped: str, spent: Cost = SPENT) -> TuningOutcome:
    made = with_costs()
    (first, *_) = made.tasks
    task = replace(first, stopped=stopped)
    return replace(made, tasks=(task,), spent=spent)


def test_exact_hits_save_what_the_plan_says() -> None:
    hits = Cost(seconds=40.0, joules=90.0, energy_source="rapl")
    assert savings(planned(60.0, hits), []) == (Saving(by="cache", cost=hits),)


def test_what_is_left_under_a_cap_is_no_saving() -> None:
    assert savings(planned(60.0), [ended("converged")]) == ()
    assert savings(None, [ended("converged")]) == ()


def test_the_filter_saves_what_rejected_ones_would_have_needed_for_as_much() -> None:
    """Half of the kept ones are improvements, a tenth of the rejected ones: 100 candidates for the
    10 of 20, 80 more than it took, at 0.3 s each."""
    kept = [cost(improved=number % 2 == 0) for number in range(20)]
    rejected = [cost(pick="audit", improved=number < 3) for number in range(30)]
    made = with_costs(*kept, *rejected)
    spent = replace(SPENT, seconds=50 * 0.3 + 0.3)
    (found,) = savings(None, [replace(made, spent=spent)])
    assert found.by == "filter"
    assert found.cost.seconds == pytest.approx(80 * 0.3)
    assert found.cost.joules == pytest.approx(1000.0 * 24 / 15.3)
    assert savings(None, [with_costs(*kept, *rejected[1:])]) == ()
