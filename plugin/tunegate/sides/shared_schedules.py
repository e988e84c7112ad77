"""The same schedule on both sides for what both have, also where the model decides about it.

A schedule is tried in the model, and dropped where the default one is faster. Each side by itself
could decide otherwise, by luck, and the comparison would see that. So the base decides for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from tunegate.artifacts.builds import Build
from tunegate.artifacts.changes import ModelChange, ModelPath
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.schedule_source import UNMEASURED, ScheduleSource
from tunegate.artifacts.tasks import TuningTask
from tunegate.config import TargetConfig
from tunegate.ports import BuildJob
from tunegate_cache.format.records import WorkloadKey


class DecidedByBase(NamedTuple):
    """The tasks of a model that both its sides have, and whose schedule is tried in it. With
    `is_alike` the sides differ in nothing but weights."""

    keys: frozenset[WorkloadKey]
    is_alike: bool = False


def decided_by_base(
    plan: TuningPlan,
    sources: Mapping[WorkloadKey, ScheduleSource],
    targets: Iterable[TargetConfig],
) -> dict[ModelPath, DecidedByBase]:
    """Returns what the base of each model decides for its head: on a GPU about what nobody has
    measured."""
    cpus = {target.name for target in targets if target.kind == "llvm"}
    alike = {change.path for change in plan.changes.models if _is_alike(change)}
    found: dict[ModelPath, set[WorkloadKey]] = {}
    for resolved in plan.resolution.tasks:
        source = sources.get(resolved.task.key)
        if source is not None and (resolved.task.target in cpus or source in UNMEASURED):
            for model in _shared_by(resolved.task):
                found.setdefault(model, set()).add(resolved.task.key)
    return {
        model: DecidedByBase(frozenset(keys), is_alike=model in alike)
        for model, keys in found.items()
    }


def as_in_base(job: BuildJob, of_base: BuildJob, base: Build, decided: DecidedByBase) -> BuildJob:
    """The job of the head, with what the base has for these tasks; a model whose sides differ in
    nothing but weights is built and cut as its base was. A base that could not be built says
    nothing, and neither does one in parts of tasks that none of its parts has."""
    if base.error is not None:
        return job
    if decided.is_alike and base.how is not None and job.model.shapes == of_base.model.shapes:
        return msgspec.structs.replace(job, how=base.how)
    kept = {task.key for task in base.tasks if task.rid}
    settled = decided.keys & {task.key for task in base.tasks}
    return msgspec.structs.replace(job.with_default_schedules(settled - kept), settled=settled)


def _is_alike(change: ModelChange) -> bool:
    base, head = change.base, change.head
    if base is None or head is None or not base.graph_digest:
        return False
    return base.graph_digest == head.graph_digest


def _shared_by(task: TuningTask) -> list[ModelPath]:
    sides = {(use.model, use.side) for use in task.uses}
    return [model for model, side in sides if side == "base" and (model, "head") in sides]
