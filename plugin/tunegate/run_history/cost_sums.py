"""The entries of a history, summed up: what was spent and saved, by week, repository and model."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import msgspec

from tunegate.artifacts.history import CostSum, CostSums, HistoryEntry, ModelCost
from tunegate.run_history.model_costs import together

LET_THROUGH = frozenset({"pass", "new", "waived", "warmed"})
"""Statuses of a model that ships, or of one that was tuned on its own branch."""


def cost_sums(entries: Sequence[HistoryEntry]) -> CostSums:
    """The sums; the dearest repositories and models first, by money or else by time."""
    counted = [entry for entry in entries if entry.cost is not None]
    return CostSums(
        total=_row("", counted),
        weeks=tuple(sorted(_grouped(counted, week_of), key=lambda row: row.name)),
        repositories=_dearest(_grouped(counted, lambda entry: entry.repository)),
        models=_dearest(_grouped(counted, lambda entry: entry.model)),
        unfinished=len(runs_of(e for e in counted if e.status in {"cancelled", "aborted"})),
        uncounted=len(entries) - len(counted),
    )


def runs_of(entries: Iterable[HistoryEntry]) -> set[tuple[int, str, str]]:
    """Returns keys that tell the runs of these entries apart: each leaves a line for every
    model."""
    return {(entry.at, entry.commit, entry.repository) for entry in entries}


def week_of(entry: HistoryEntry) -> str:
    """The Monday of the week of a run, in UTC."""
    day = datetime.datetime.fromtimestamp(entry.at, tz=datetime.UTC).date()
    return (day - datetime.timedelta(days=day.weekday())).isoformat()


def _grouped(entries: Sequence[HistoryEntry], name: Callable[[HistoryEntry], str]) -> list[CostSum]:
    groups: dict[str, list[HistoryEntry]] = defaultdict(list)
    for entry in entries:
        groups[name(entry)].append(entry)
    return [_row(key, group) for key, group in groups.items()]


def _row(name: str, entries: Sequence[HistoryEntry]) -> CostSum:
    costs = [_counted(entry, entry.cost) for entry in entries if entry.cost is not None]
    best = max(costs, key=lambda cost: cost.gained_ms, default=ModelCost())
    cost = msgspec.structs.replace(together(costs), gained_ms=best.gained_ms)
    return CostSum(name=name, runs=len(runs_of(entries)), cost=cost, gain_usd=best.usd)


def _counted(entry: HistoryEntry, cost: ModelCost) -> ModelCost:
    """Returns the cost without a gain that nobody has: what a run took off a model that it did not
    let through is not shipped."""
    return cost if entry.status in LET_THROUGH else msgspec.structs.replace(cost, gained_ms=0.0)


def _dearest(rows: Iterable[CostSum]) -> tuple[CostSum, ...]:
    def price(row: CostSum) -> tuple[float, float, str]:
        cost = row.cost
        return (
            -((cost.usd or 0.0) + (cost.gate_usd or 0.0)),
            -(cost.seconds + cost.gate_seconds),
            row.name,
        )

    return tuple(sorted(rows, key=price))
