"""What the shards of a plan are expected to cost, before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.artifacts.cost import Cost
from tunegate.artifacts.plans import Shard
from tunegate.tuning.budget import SECONDS_PER_HOUR


def estimated_cost(shards: Sequence[Shard]) -> Cost:
    """Machine time, money and joules by declared watts, summed; no money where a shard has no
    price, no joules where one has no watts."""
    per_hour = _bill(shards, [shard.budget.usd_per_hour for shard in shards])
    joules = _bill(shards, [shard.budget.watts for shard in shards])
    return Cost(
        seconds=sum(shard.predicted_seconds for shard in shards),
        usd=None if per_hour is None else per_hour / SECONDS_PER_HOUR,
        joules=joules,
        energy_source=None if joules is None else "declared",
    )


def planned_trials(shards: Sequence[Shard]) -> int:
    """The trials of all tasks."""
    return sum(task.trials for shard in shards for task in shard.tasks)


def _bill(shards: Sequence[Shard], rates: Sequence[float | None]) -> float | None:
    """The predicted seconds times the rate of each shard; None where one has none."""
    known = [rate for rate in rates if rate is not None]
    if not shards or len(known) < len(shards):
        return None
    return sum(s.predicted_seconds * rate for s, rate in zip(shards, known, strict=True))


def saved(*, without: Cost, estimate: Cost) -> Cost:
    """How much more it is without something than the estimate with it."""
    return Cost(
        seconds=max(0.0, without.seconds - estimate.seconds),
        usd=_more(without.usd, estimate.usd),
        joules=_more(without.joules, estimate.joules),
        energy_source=without.energy_source,
    )


def _more(without: float | None, estimate: float | None) -> float | None:
    """How much more it is, or None where one of the two is not known."""
    return None if without is None or estimate is None else max(0.0, without - estimate)
