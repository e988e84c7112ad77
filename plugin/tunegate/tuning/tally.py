"""TuningPlan and TuningOutcomes -> TuningSummary: what tuning did, in one line of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import assert_never

from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import Shard, TuningPlan
from tunegate.artifacts.verdicts import TuningSummary
from tunegate.tuning.costs.energy_use import total_energy
from tunegate.tuning.standing.task_partition import partition_of
from tunegate.tuning.unfinished import is_resumed
from tunegate_cache.format.records import ExactHit, Lookup, Miss, TransferHit

_WORST_FIRST = (
    *("cancelled", "failed", "lost"),
    *("usd", "seconds", "trials", "target-latency", "converged"),
)
"""The reasons from worst to best: of several shards a reader must know the worst;
"finished" where none of these."""


def tally(plan: TuningPlan | None, outcomes: Sequence[TuningOutcome]) -> TuningSummary:
    """Sum up; an outcome that came twice counts once. Without a plan nothing was done."""
    if plan is None:
        return TuningSummary(
            tasks=0,
            exact=0,
            transfer=0,
            miss=0,
            trials=0,
            seconds=0.0,
            usd=None,
            stopped="finished",
        )
    by_shard = {outcome.shard: outcome for outcome in outcomes}
    found = Counter(_kind(resolved.lookup) for resolved in plan.resolution.tasks)
    prices = [outcome.spent.usd for outcome in by_shard.values()]
    energy = total_energy([outcome.spent for outcome in by_shard.values()])
    parts = partition_of(plan.resolution.tasks, outcomes)
    return TuningSummary(
        tasks=len(plan.resolution.tasks),
        exact=found["exact"],
        transfer=found["transfer"],
        miss=found["miss"],
        trials=sum(task.trials for o in by_shard.values() for task in o.tasks),
        seconds=sum(outcome.spent.seconds for outcome in by_shard.values()),
        usd=_total_usd(prices, is_priced=plan.budget.usd_per_hour is not None),
        stopped=_stopped(
            {outcome.stopped for outcome in by_shard.values()}
            | {"lost" for _ in lost_shards(plan, outcomes)}
        ),
        tuned=len(parts.now),
        measured=len(parts.measured),
        begun=len(parts.begun),
        waiting=len(parts.waiting),
        unfinished=sum(is_resumed(t.task.key, t.lookup) for t in plan.resolution.tasks),
        joules=energy.joules,
        energy_source=energy.source,
    )


def lost_shards(plan: TuningPlan, outcomes: Sequence[TuningOutcome]) -> tuple[Shard, ...]:
    """Those that had something to tune, and of which nothing came back: their runner was lost."""
    came = {outcome.shard for outcome in outcomes}
    return tuple(
        shard
        for shard in plan.shards
        if shard.index not in came and any(task.trials for task in shard.tasks)
    )


def lost_shard_warnings(plan: TuningPlan, outcomes: Sequence[TuningOutcome]) -> Iterator[str]:
    """A line for each of them."""
    for shard in lost_shards(plan, outcomes):
        tasks = "1 task was" if len(shard.tasks) == 1 else f"{len(shard.tasks)} tasks were"
        yield (
            f"shard {shard.index} on {shard.target} left no "
            f"outcome-{shard.index}.json: its {tasks} not tuned in this run. What it "
            "had published is in the cache; run its job again."
        )


def _kind(lookup: Lookup) -> str:
    match lookup:
        case ExactHit():
            return "exact"
        case TransferHit():
            return "transfer"
        case Miss():
            return "miss"
        case _:
            assert_never(lookup)


def _total_usd(prices: Sequence[float | None], *, is_priced: bool) -> float | None:
    known = [price for price in prices if price is not None]
    return sum(known) if known or is_priced else None


def _stopped(reasons: set[str]) -> str:
    return next((reason for reason in _WORST_FIRST if reason in reasons), "finished")
