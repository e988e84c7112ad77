"""Which tasks of a model are known after tuning: finished, now or by an earlier run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.artifacts.warmed import WarmedModel
from tunegate.tuning.standing.answered import answers_next_run
from tunegate.tuning.standing.task_partition import TaskOnTarget, partition_of
from tunegate_cache.format.records import ExactHit, WorkloadKey


def known_after(
    resolved: Iterable[ResolvedTask], outcomes: Sequence[TuningOutcome]
) -> frozenset[WorkloadKey]:
    """The tasks that the next run has an answer for."""
    known = {task.task.key for task in resolved if isinstance(task.lookup, ExactHit)}
    finished = {o.key for outcome in outcomes for o in outcome.tasks if answers_next_run(o)}
    return frozenset(known | finished)


def warmed_models(
    resolved: Sequence[ResolvedTask], outcomes: Sequence[TuningOutcome]
) -> tuple[WarmedModel, ...]:
    """Every model on every target, in order."""
    parts = partition_of(resolved, outcomes)
    known = parts.before | parts.now | parts.measured
    tasks: dict[tuple[ModelPath, str], list[ResolvedTask]] = {}
    for each in resolved:
        for model in dict.fromkeys(use.model for use in each.task.uses):
            tasks.setdefault((model, each.task.target), []).append(each)
    return tuple(
        WarmedModel(
            model=model,
            target=target,
            tasks=len(found),
            known_before=_count(found, parts.before),
            known=_count(found, known),
            measured=_count(found, parts.measured),
        )
        for (model, target), found in sorted(tasks.items())
    )


def _count(found: Sequence[ResolvedTask], part: frozenset[TaskOnTarget]) -> int:
    return sum((each.task.key, each.task.target) in part for each in found)
