"""The expected costs of a plan's shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tunegate.artifacts.plans import SECONDS_PER_HOUR, Cost, Shard
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.tune.expected_time import TargetKind, known_ms, seconds_of_a_trial
from tunegate_cache.format.records import ExactHit


def estimated_cost(shards: Sequence[Shard]) -> Cost:
    """Returns the sum of machine time and money. Money is None if a shard has no price."""
    return _cost(shards, [shard.predicted_seconds for shard in shards])


def cost_of_hits(shards: Sequence[Shard], kinds: Mapping[str, TargetKind]) -> Cost | None:
    """Returns the cost of measuring the candidates that the exact hits hold as records, at the
    times in these; None without a hit. A look-up returns only the best candidates and the latest
    failures, so this is a lower bound. `kinds` are those of the targets."""
    if not trials_of_hits(shards):
        return None
    return _cost(shards, [_seconds_of_hits(shard, kinds[shard.target]) for shard in shards])


def trials_of_hits(shards: Sequence[Shard]) -> int:
    """Returns the number of candidates that the exact hits hold as records."""
    return sum(_trials(task.resolved) for shard in shards for task in shard.tasks)


def _seconds_of_hits(shard: Shard, kind: TargetKind) -> float:
    return sum(
        _trials(each.resolved) * seconds_of_a_trial(known_ms(each.resolved, kind), kind)
        for each in shard.tasks
    )


def _trials(resolved: ResolvedTask) -> int:
    lookup = resolved.lookup
    return len(lookup.records) + len(lookup.failures) if isinstance(lookup, ExactHit) else 0


def _cost(shards: Sequence[Shard], seconds: Sequence[float]) -> Cost:
    per_hour = _bill(seconds, [shard.budget.usd_per_hour for shard in shards])
    return Cost(
        seconds=sum(seconds),
        usd=None if per_hour is None else per_hour / SECONDS_PER_HOUR,
    )


def _bill(seconds: Sequence[float], rates: Sequence[float | None]) -> float | None:
    """Returns the seconds of each shard times its rate, None if one has no rate."""
    known = [rate for rate in rates if rate is not None]
    if not seconds or len(known) < len(seconds):
        return None
    return sum(each * rate for each, rate in zip(seconds, known, strict=True))
