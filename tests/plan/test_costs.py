"""Expected costs of shards together."""

import math

import msgspec
import pytest

from tests.support import report_parts as parts
from tests.support.tuning_records import make_record
from tests.support.tuning_tasks import make_shard, make_task
from tunegate.artifacts.plans import Budget, Cost, PlannedTask, Shard
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.config import GateConfig
from tunegate.plan.plan import cost_of_hits, estimated_cost, trials_of_hits
from tunegate.plan.resolve import PEAK, fastest_nanoseconds
from tunegate.plan.run_forecast import expected_seconds
from tunegate.tune.expected_time import RATES
from tunegate_cache.format.records import ExactHit


def shard(seconds: float, *, usd: float | None = None) -> Shard:
    budget = Budget(seconds=None, trials=None, usd_per_hour=usd)
    return make_shard(budget=budget, predicted_seconds=seconds)


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


# What no hardware can do.


def test_more_operations_need_more_time_and_unknown_ones_none() -> None:
    assert fastest_nanoseconds(make_task(flops=1e12), "llvm") == 500_000
    assert fastest_nanoseconds(make_task(flops=1e12), "cuda") == 25_000
    assert fastest_nanoseconds(make_task(flops=0.0), "llvm") == 0


@pytest.mark.parametrize("kind", ["llvm", "cuda"])
def test_the_bound_is_far_above_what_is_seen(kind: str) -> None:
    seen = max(rates.after for (target, _), rates in RATES.items() if target == kind)
    assert math.log10(PEAK[kind] / seen) > 3  # type: ignore[index]
