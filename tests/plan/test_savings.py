"""What the cache and the filter saved."""

from __future__ import annotations

import msgspec
import pytest

from tests.report.test_cost_table import cost, with_costs
from tests.support.plans import plan_of
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import Budget, Cost, Shard, TuningPlan
from tunegate.plan.costs import Saving, savings

SPENT = Cost(seconds=20.0, usd=2.0, joules=1000.0, energy_source="rapl")


def planned(seconds: float | None, saved: Cost | None = None) -> TuningPlan:
    shard = Shard(
        index=0,
        target="cpu",
        labels=(),
        tasks=(),
        budget=Budget(seconds=seconds, trials=None),
        predicted_seconds=1.0,
    )
    return msgspec.structs.replace(plan_of([]), shards=(shard,), saved=saved)


def ended(stopped: str, spent: Cost = SPENT) -> TuningOutcome:
    made = with_costs()
    (first, *_) = made.tasks
    task = msgspec.structs.replace(first, stopped=stopped)
    return msgspec.structs.replace(made, tasks=(task,), spent=spent)


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
    spent = msgspec.structs.replace(SPENT, seconds=50 * 0.3 + 0.3)
    (found,) = savings(None, [msgspec.structs.replace(made, spent=spent)])
    assert found.by == "filter"
    assert found.cost.seconds == pytest.approx(80 * 0.3)
    assert found.cost.joules == pytest.approx(1000.0 * 24 / 15.3)
    few = with_costs(*kept, *rejected[1:])
    assert savings(None, [few]) == ()
