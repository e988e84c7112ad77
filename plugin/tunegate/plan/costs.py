"""The expected costs of a plan's shards, and what the cache saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from tunegate.artifacts.outcomes import CandidateCost, TuningOutcome
from tunegate.artifacts.plans import Cost, Shard, TuningPlan
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.tune.budget import SECONDS_PER_HOUR, total_energy
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


# What the cache and the filter save. Both are estimates.
#
# Trimmer (IEEE CLOUD 2022) measures the energy that filter and early stop save by runs with and
# without them. A run here has no twin without them, so each saving is estimated from what was
# measured. An early stop is not counted: what is left of a cap would perhaps not have been spent.

_FEWEST_HITS = 3
"""Below so many rejected candidates that were faster, their rate says nothing."""
_LEAST_SECONDS = 1.0

SavedBy = Literal["cache", "filter"]


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """Machine time that was not spent, and what it would have cost."""

    by: SavedBy
    cost: Cost


def savings(plan: TuningPlan | None, outcomes: Sequence[TuningOutcome]) -> tuple[Saving, ...]:
    """Returns the savings of a second or more."""
    found: tuple[tuple[SavedBy, Cost | None], ...] = (
        ("cache", plan.saved if plan else None),
        ("filter", _by_filter(outcomes)),
    )
    return tuple(
        Saving(by=by, cost=cost)
        for by, cost in found
        if cost is not None and cost.seconds >= _LEAST_SECONDS
    )


def _by_filter(outcomes: Sequence[TuningOutcome]) -> Cost | None:
    """Returns the cost of finding as many improvements among rejected candidates, at the rate that
    an audit of these measured. None if the audit found too few."""
    tasks = [task for outcome in outcomes for task in outcome.tasks]
    every = [cost for task in tasks for cost in task.costs]
    kept, rejected = _quick(every, "predicted"), _quick(every, "audit")
    hits = sum(cost.improved for cost in rejected)
    if hits < _FEWEST_HITS or not kept:
        return None
    needed = sum(cost.improved for cost in kept) * len(rejected) / hits
    total = sum(task.search_seconds for task in tasks) + sum(map(_seconds, every))
    more = (needed - len(kept)) * sum(map(_seconds, kept)) / len(kept)
    spent = _sum([outcome.spent for outcome in outcomes])
    return None if spent is None else _scaled(spent, more / total)


def _quick(costs: Sequence[CandidateCost], pick: str) -> list[CandidateCost]:
    return [cost for cost in costs if cost.stage == "quick" and cost.pick == pick]


def _seconds(cost: CandidateCost) -> float:
    return cost.build_seconds + cost.run_seconds


def _scaled(cost: Cost, by: float) -> Cost:
    return Cost(
        seconds=max(0.0, cost.seconds * by),
        usd=None if cost.usd is None else max(0.0, cost.usd * by),
        joules=None if cost.joules is None else max(0.0, cost.joules * by),
        energy_source=cost.energy_source,
    )


def _sum(costs: Sequence[Cost]) -> Cost | None:
    """Returns the sum. Money and joules need to be present in all costs."""
    if not costs:
        return None
    usd = [cost.usd for cost in costs if cost.usd is not None]
    energy = total_energy(costs)
    return Cost(
        seconds=sum(cost.seconds for cost in costs),
        usd=sum(usd) if len(usd) == len(costs) else None,
        joules=energy.joules,
        energy_source=energy.source,
    )
