"""What shards are expected to cost together."""

from __future__ import annotations

import pytest

from tunegate.artifacts.cost import Cost
from tunegate.artifacts.plans import Budget, Shard
from tunegate.tuning.costs.plan_costs import estimated_cost, saved


def shard(seconds: float, *, watts: float | None = None, usd: float | None = None) -> Shard:
    return Shard(
        index=0,
        target="cpu",
        labels=(),
        tasks=(),
        budget=Budget(seconds=None, trials=None, usd_per_hour=usd, watts=watts),
        predicted_seconds=seconds,
    )


def test_money_and_joules_go_by_the_seconds_of_each_shard() -> None:
    made = estimated_cost([shard(10.0, watts=50.0, usd=36.0), shard(20.0, watts=100.0, usd=0.0)])
    assert (made.seconds, made.joules, made.energy_source) == (30.0, 2500.0, "declared")
    assert made.usd == pytest.approx(0.1)


def test_one_shard_without_a_rate_leaves_the_sum_unknown() -> None:
    made = estimated_cost([shard(10.0, watts=50.0), shard(20.0)])
    assert (made.seconds, made.usd, made.joules, made.energy_source) == (30.0, None, None, None)
    assert estimated_cost([]) == Cost(seconds=0.0)


def test_what_is_saved_is_the_difference_and_never_negative() -> None:
    with_hits = Cost(seconds=10.0, usd=1.0, joules=500.0, energy_source="declared")
    without = Cost(seconds=30.0, usd=0.5, joules=900.0, energy_source="declared")
    assert saved(without=without, estimate=with_hits) == Cost(
        seconds=20.0, usd=0.0, joules=400.0, energy_source="declared"
    )
    assert saved(without=without, estimate=Cost(seconds=40.0)).joules is None
