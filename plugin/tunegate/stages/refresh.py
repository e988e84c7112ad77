"""A shard as the cache knows it now, not as it was when the plan was made."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.plans import PlannedTask, Shard
from tunegate.ports import TaskIndex
from tunegate.tuning.unfinished import resume_point
from tunegate_cache.format.records import ExactHit, Lookup


def refreshed(shard: Shard, index: TaskIndex) -> Shard:
    """Ask again about every task that is still to be tuned: an attempt that was killed has
    published what it finished, and the next one starts from there."""
    to_tune = [planned.resolved.task for planned in shard.tasks if planned.trials]
    if not to_tune:
        return shard
    found = index.lookup([(task.key, task.shape) for task in to_tune])
    tasks = tuple(_with(planned, found.get(planned.resolved.task.key)) for planned in shard.tasks)
    return msgspec.structs.replace(shard, tasks=tasks)


def _with(planned: PlannedTask, lookup: Lookup | None) -> PlannedTask:
    if not planned.trials or not isinstance(lookup, ExactHit):
        return planned
    task = planned.resolved.task
    resolved = msgspec.structs.replace(planned.resolved, lookup=resume_point(task.key, lookup))
    return msgspec.structs.replace(planned, resolved=resolved)
