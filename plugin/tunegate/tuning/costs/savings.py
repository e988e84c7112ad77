"""Savings by the cache and by the filter. Both are estimates.

Trimmer (IEEE CLOUD 2022) counts the energy that its filter and its early stop save on runs with
and without them. A run of ours has no twin without them, so each is estimated from what was
measured. What a stop saves nobody measured: the rest of a cap is no saving.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from tunegate.artifacts.cost import Cost
from tunegate.artifacts.outcomes import CandidateCost, TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.tuning.costs.energy_use import total_energy

_FEWEST_HITS = 3
"""Rejected candidates that were faster, below which their rate says nothing."""
_LEAST_SECONDS = 1.0

SavedBy = Literal["cache", "filter"]


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """Machine time that was not spent, and what it would have cost."""

    by: SavedBy
    cost: Cost


def savings(plan: TuningPlan | None, outcomes: Sequence[TuningOutcome]) -> tuple[Saving, ...]:
    """Those of a second or more."""
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
    """Returns the cost of finding as many improvements at the rate at which rejected candidates,
    which an audit measures all the same, are improvements. None where too few of them were."""
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
    """Money and joules are known where all of them are."""
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
