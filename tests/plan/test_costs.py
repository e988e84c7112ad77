"""What shards are expected to cost together."""

from __future__ import annotations

import math

import msgspec
import pytest

from tests.report.test_cost_table import cost, with_costs
from tests.support import report_parts as parts
from tests.support.plans import plan_of
from tests.support.tuning_records import make_record
from tests.support.tuning_tasks import make_task
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import Budget, Cost, PlannedTask, Shard, TuningPlan
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.config import GateConfig
from tunegate.plan.costs import Saving, cost_of_hits, estimated_cost, savings, trials_of_hits
from tunegate.plan.resolve import PEAK, fastest_nanoseconds
from tunegate.plan.run_forecast import expected_seconds
from tunegate.tune.expected_time import RATES
from tunegate_cache.format.records import ExactHit


def shard(seconds: float, *, usd: float | None = None) -> Shard:
    return Shard(
        index=0,
        target="cpu",
        labels=(),
        tasks=(),
        budget=Budget(seconds=None, trials=None, usd_per_hour=usd),
        predicted_seconds=seconds,
    )


def test_money_goes_by_the_seconds_of_each_shard() -> None:
    made = estimated_cost([shard(10.0, usd=36.0), shard(20.0, usd=0.0)])
    assert made.seconds == 30.0
    assert made.usd == pytest.approx(0.1)


def test_one_shard_without_a_price_leaves_the_sum_unknown() -> None:
    assert estimated_cost([shard(10.0, usd=36.0), shard(20.0)]) == Cost(seconds=30.0)
    assert estimated_cost([]) == Cost(seconds=0.0)


def test_hits_cost_what_their_candidates_took_whatever_the_cap_is() -> None:
    records = tuple(make_record("a", decisions=((0, (n,)),)) for n in range(6))
    failures = (make_record("a", status="compile", run_nanoseconds=()),)
    hit = ResolvedTask(make_task("a"), ExactHit(records, failures))
    known = PlannedTask(resolved=hit, trials=0, gain_ms=0.0)
    made = msgspec.structs.replace(shard(0.0, usd=36.0), tasks=(known,))
    cost = cost_of_hits([made], {"cpu": "llvm"})
    assert cost is not None
    assert cost.seconds == pytest.approx(7 * (0.4 + 20 * 1.0 / 10 / 1e3), rel=0.02)
    assert cost.usd == pytest.approx(cost.seconds / 100)
    assert trials_of_hits([made]) == 7
    assert cost_of_hits([shard(0.0)], {"cpu": "llvm"}) is None


GATE = GateConfig()


def test_a_model_without_a_base_is_not_compared() -> None:
    new = parts.change("m.onnx", kind="added", base=None)
    assert expected_seconds(new, [], "llvm", GATE) < expected_seconds(
        parts.change("m.onnx"), [], "llvm", GATE
    )


def test_no_more_is_expected_than_the_gate_may_spend() -> None:
    change = parts.change("m.onnx")
    least = GateConfig(seconds=1.0, extend=False)
    assert expected_seconds(change, [], "llvm", least) < 12


# What no hardware can do.


def test_more_operations_need_more_time_and_unknown_ones_none() -> None:
    assert fastest_nanoseconds(make_task(flops=1e12), "llvm") == 500_000
    assert fastest_nanoseconds(make_task(flops=1e12), "cuda") == 25_000
    assert fastest_nanoseconds(make_task(flops=0.0), "llvm") == 0


@pytest.mark.parametrize("kind", ["llvm", "cuda"])
def test_the_bound_is_far_above_what_is_seen(kind: str) -> None:
    seen = max(rates.tuned for (target, _), rates in RATES.items() if target == kind)
    assert math.log10(PEAK[kind] / seen) > 3  # type: ignore[index]


# What the cache and the filter saved.

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
