"""The end of a shard's tuning: an outcome for every planned task, and one reason for the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import PlannedTask
from tunegate.tuning.budget import Limit, Spending, clock_limit
from tunegate_cache.format.records import ExactHit, WorkloadKey

RunEnd = Literal["finished", "converged", "target-latency", "seconds", "usd", "trials", "failed"]

_TOO_SHORT_SHARE = 0.5
"""A run that measured nothing, and in which so much of its time has passed, had too little of it:
it ends before its cap where no candidate would be measured by then."""
_UNTOUCHED = frozenset({"exact", "not-started", "shared", "behind"})


def final_outcomes(
    planned: Sequence[PlannedTask],
    latest: Mapping[WorkloadKey, TaskOutcome],
    *,
    is_cancelled: bool,
) -> tuple[TaskOutcome, ...]:
    """Returns an outcome for each planned task, in the plan's order; unfinished ones are
    'cancelled': a tuner gives the end of a task only when all have ended."""
    outcomes = []
    for task in planned:
        outcome = latest.get(task.resolved.task.key) or _untouched(task)
        if is_cancelled and outcome.stopped not in _UNTOUCHED:
            outcome = msgspec.structs.replace(outcome, stopped="cancelled")
        outcomes.append(outcome)
    return tuple(outcomes)


def why_ended(tasks: Sequence[TaskOutcome], spending: Spending) -> RunEnd:
    """The limit, if one kept tasks from their end; 'failed' if nothing that was tried ever ran;
    'converged' if a task was left for what more trials promise; 'finished' if no trial was left."""
    stops = {task.stopped for task in tasks}
    if "target-latency" in stops:
        return "target-latency"
    tried = [task for task in tasks if task.trials]
    is_out = spending.is_spent or (not tried and _clock_share(spending) >= _TOO_SHORT_SHARE)
    if "budget" in stops or ("not-started" in stops and is_out):
        return spending.limit or _nearest_limit(spending)
    if tried and all(task.stopped == "failed" for task in tried):
        return "failed"
    return "converged" if any(task.stopped == "converged" for task in tried) else "finished"


def _clock_share(spending: Spending) -> float:
    seconds = spending.budget.seconds
    return spending.seconds / seconds if seconds else 0.0


def _nearest_limit(spending: Spending) -> Limit:
    """The limit that stopped a tuner when no further batch would fit."""
    budget = spending.budget
    clock = _clock_share(spending)
    counter = 0.0 if not budget.trials else spending.trials / budget.trials
    return "trials" if counter > clock else clock_limit(budget)


def _untouched(planned: PlannedTask) -> TaskOutcome:
    """The outcome of a task that the tuner had no reason, or no time, to touch."""
    task, lookup = planned.resolved.task, planned.resolved.lookup
    known = lookup.records if isinstance(lookup, ExactHit) else ()
    best_ms = min((record.median_ms for record in known if record.status == "ok"), default=None)
    return TaskOutcome(
        key=task.key,
        target=task.target,
        name=task.uses[0].name if task.uses else task.operator,
        source="exact" if known else "default",
        records=known,
        trials=0,
        before_ms=best_ms,
        best_ms=best_ms,
        seconds=0.0,
        stopped="exact" if known else "not-started",
    )
