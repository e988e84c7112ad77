"""The best that is known of every task when a model is built, and where it is from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.schedule_source import ScheduleSource
from tunegate_cache.format.records import ExactHit, Miss, TransferHit, TuningRecord, WorkloadKey

_UNTRIED = ("not-started", "shared", "behind")
"""Endings of a task for which nothing was run."""


class BestRecords(NamedTuple):
    """The records of every task, best first, and where they are from."""

    records: dict[WorkloadKey, tuple[TuningRecord, ...]]
    sources: dict[WorkloadKey, ScheduleSource]


def best_records(plan: TuningPlan, outcomes: Sequence[TuningOutcome]) -> BestRecords:
    """This run's records come before those of trusted zones. A task that nothing was measured for
    gets what the prior picks, among its neighbours' records too: better than nothing, and marked as
    not verified. Nothing is picked where all its models stay far behind another runtime: picks make
    builds dearer, and would not ship. What the run's own zone claims and nothing has measured is
    used, on both sides alike, only where trusted zones have nothing at all."""
    best, sources = _trusted(plan)
    tasks = [task for outcome in outcomes for task in outcome.tasks]
    for task in tasks:
        own = _of(task.key, task.records)
        if own:
            best[task.key] = own + _of(task.key, best.get(task.key, ()))
            sources[task.key] = task.source
    decided = {*best, *(task.key for task in tasks if task.stopped not in _UNTRIED)}
    for resolved in plan.resolution.tasks:
        key = resolved.task.key
        if resolved.skipped == "behind" and sources.get(key, "transfer") == "transfer":
            best.pop(key, None)
            sources.pop(key, None)
            continue
        if key in decided:
            continue
        if resolved.claims is not None:
            best[key], sources[key] = resolved.claims.records, "claimed"
        else:
            best[key], sources[key] = resolved.lookup.failures, "prior"
    return BestRecords(best, sources)


def _of(key: WorkloadKey, records: Iterable[TuningRecord]) -> tuple[TuningRecord, ...]:
    return tuple(record for record in records if record.key == key)


def _trusted(plan: TuningPlan) -> BestRecords:
    best: dict[WorkloadKey, tuple[TuningRecord, ...]] = {}
    sources: dict[WorkloadKey, ScheduleSource] = {}
    for resolved in plan.resolution.tasks:
        match resolved.lookup:
            case ExactHit(records=records):
                best[resolved.task.key] = records
                sources[resolved.task.key] = "exact"
            case TransferHit(records=records, failures=failures):
                best[resolved.task.key] = (*records, *failures)
                sources[resolved.task.key] = "transfer"
            case Miss():
                pass
    return BestRecords(best, sources)
