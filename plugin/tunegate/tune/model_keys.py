"""The identity of a whole model on a target, for tuning: its tasks and their counts."""

import hashlib
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from tunegate.artifacts.changes import ModelPath, Side
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.tasks import ResolvedTask, TuningTask
from tunegate_cache.format.records import TuningRecord, WorkloadKey

ModelOnTarget = tuple[ModelPath, str]
_Task = TypeVar("_Task", bound=TuningTask | ResolvedTask)


def tasks_of_models(tasks: Iterable[_Task]) -> dict[ModelOnTarget, list[_Task]]:
    """Returns the tasks of each model on each target, in their order."""
    of_models: dict[ModelOnTarget, list[_Task]] = {}
    for each in tasks:
        task = each.task if isinstance(each, ResolvedTask) else each
        for model in dict.fromkeys(use.model for use in task.uses):
            of_models.setdefault((model, task.target), []).append(each)
    return of_models


def model_keys(
    tasks: Iterable[TuningTask], version: str
) -> dict[ModelOnTarget, dict[Side, WorkloadKey]]:
    """Returns a key for each side of a model. Models of equal tasks have equal keys, whatever their
    weights. `version` is this product's: another version may compile them differently."""
    parts: dict[tuple[ModelOnTarget, Side], list[tuple[str, int]]] = {}
    targets: dict[tuple[ModelOnTarget, Side], str] = {}
    for task in tasks:
        for use in task.uses:
            where = ((use.model, task.target), use.side)
            parts.setdefault(where, []).append((task.key.workload, use.weight))
            targets[where] = task.key.target
    keys: dict[ModelOnTarget, dict[Side, WorkloadKey]] = {}
    for (model, side), tasks_of_side in parts.items():
        text = msgspec.json.encode(["model", version, sorted(tasks_of_side)])
        key = WorkloadKey(hashlib.sha256(text).hexdigest(), targets[model, side])
        keys.setdefault(model, {})[side] = key
    return keys


# The schedules that a model is built with, as far as they are known: the election depends on them.

UsedSchedule = tuple[str, int, str]
"""A workload, its calls in the model, and the digest of its schedule."""


def known_schedules(
    tasks: Iterable[ResolvedTask], outcomes: Iterable[TuningOutcome] = ()
) -> dict[tuple[ModelOnTarget, Side], list[UsedSchedule]]:
    """Returns the known schedules of each side of a model, sorted. `outcomes` add what this run
    measured, defaults included, because the cache answers with it from now on. Transfers from
    neighbours do not count: a run that tunes one task gives neighbours to others, and the next run
    would elect anew. Tasks without a schedule do not count: a plan lists none for a model that the
    compiler refused, and the next run lists them all."""
    own_records = {
        task.key: own
        for outcome in outcomes
        for task in outcome.tasks
        if (own := tuple(record for record in task.records if record.key == task.key))
    }
    schedules: dict[tuple[ModelOnTarget, Side], list[UsedSchedule]] = {}
    for resolved_task in tasks:
        task = resolved_task.task
        in_cache = getattr(resolved_task.lookup, "records", ())
        records = own_records.get(task.key) or [each for each in in_cache if each.key == task.key]
        if not records:
            continue
        for use in task.uses:
            where = ((use.model, task.target), use.side)
            schedule = (task.key.workload, use.weight, _digest(records[0]))
            schedules.setdefault(where, []).append(schedule)
    return {where: sorted(of_model) for where, of_model in schedules.items()}


def _digest(record: TuningRecord) -> str:
    return hashlib.sha256(msgspec.json.encode([record.template, record.decisions])).hexdigest()
