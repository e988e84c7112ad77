"""The identity of a whole model on a target, to the tuner: which tasks it has, and how often."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from tunegate.artifacts.changes import ModelPath, Side
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.tasks import ResolvedTask, TuningTask
from tunegate_cache.format.records import TuningRecord, WorkloadKey

ModelOnTarget = tuple[ModelPath, str]


def model_keys(
    tasks: Iterable[TuningTask], version: str
) -> dict[ModelOnTarget, dict[Side, WorkloadKey]]:
    """A key for each side of a model: equal for models of equal tasks, whatever their weights.
    `version` is that of this product: another one may compile them otherwise."""
    parts: dict[tuple[ModelOnTarget, Side], list[tuple[str, int]]] = {}
    targets: dict[tuple[ModelOnTarget, Side], str] = {}
    for task in tasks:
        for use in task.uses:
            where = ((use.model, task.target), use.side)
            parts.setdefault(where, []).append((task.key.workload, use.weight))
            targets[where] = task.key.target
    found: dict[ModelOnTarget, dict[Side, WorkloadKey]] = {}
    for (model, side), used in parts.items():
        text = msgspec.json.encode(["model", version, sorted(used)])
        key = WorkloadKey(hashlib.sha256(text).hexdigest(), targets[model, side])
        found.setdefault(model, {})[side] = key
    return found


# The schedules that a model is built with, as far as they are known: whoever is elected depends on
# them.

UsedSchedule = tuple[str, int, str]
"""A workload, how often a model runs it, and the digest of its schedule."""


def known_schedules(
    tasks: Iterable[ResolvedTask], outcomes: Iterable[TuningOutcome] = ()
) -> dict[tuple[ModelOnTarget, Side], list[UsedSchedule]]:
    """Those of each side of a model, sorted; `outcomes` are what this run has measured: also what
    is measured once without a trial is an answer of the cache from then on. What is transferred
    from neighbours does not count: a run that tunes one task leaves neighbours to others, and the
    next one would elect anew. Nor does a task without any: a plan lists none of a model that the
    compiler has just refused, and the next run lists them all."""
    measured = {
        task.key: own
        for each in outcomes
        for task in each.tasks
        if (own := tuple(record for record in task.records if record.key == task.key))
    }
    found: dict[tuple[ModelOnTarget, Side], list[UsedSchedule]] = {}
    for resolved in tasks:
        task = resolved.task
        known = getattr(resolved.lookup, "records", ())
        records = measured.get(task.key) or [each for each in known if each.key == task.key]
        if not records:
            continue
        for use in task.uses:
            where = ((use.model, task.target), use.side)
            used = (task.key.workload, use.weight, _digest(records[0]))
            found.setdefault(where, []).append(used)
    return {where: sorted(used) for where, used in found.items()}


def _digest(record: TuningRecord) -> str:
    return hashlib.sha256(msgspec.json.encode([record.template, record.decisions])).hexdigest()
