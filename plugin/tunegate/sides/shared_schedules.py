"""The same schedule on both sides for what both have, also where nobody has measured it.

A schedule that nobody has measured is tried in the model, and dropped where the default one is
faster. Each side by itself could decide otherwise, by luck, and the comparison would see that. So
the base decides for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tunegate.artifacts.builds import Build
from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.schedule_source import UNMEASURED, ScheduleSource
from tunegate.artifacts.tasks import TuningTask
from tunegate.ports import BuildJob
from tunegate_cache.format.records import WorkloadKey


def decided_by_base(
    plan: TuningPlan, sources: Mapping[WorkloadKey, ScheduleSource]
) -> dict[ModelPath, frozenset[WorkloadKey]]:
    """The tasks of each model that both its sides have, and whose schedule nobody has measured."""
    found: dict[ModelPath, set[WorkloadKey]] = {}
    for resolved in plan.resolution.tasks:
        if sources.get(resolved.task.key) in UNMEASURED:
            for model in _shared_by(resolved.task):
                found.setdefault(model, set()).add(resolved.task.key)
    return {model: frozenset(keys) for model, keys in found.items()}


def as_in_base(job: BuildJob, base: Build, keys: Iterable[WorkloadKey]) -> BuildJob:
    """The job of the head, with what the base has for these tasks. A base that could not be built
    says nothing."""
    if base.error is not None:
        return job
    kept = {task.key for task in base.tasks if task.rid}
    settled = frozenset(keys)
    return msgspec.structs.replace(job.with_default_schedules(settled - kept), settled=settled)


def _shared_by(task: TuningTask) -> list[ModelPath]:
    sides = {(use.model, use.side) for use in task.uses}
    return [model for model, side in sides if side == "base" and (model, "head") in sides]
