"""Which tasks of a model are known after tuning: finished, now or by an earlier run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.artifacts.warmed import WarmedModel
from tunegate.tuning.standing.answered import answers_next_run
from tunegate_cache.format.records import ExactHit, WorkloadKey


def known_after(
    resolved: Iterable[ResolvedTask], outcomes: Sequence[TuningOutcome]
) -> frozenset[WorkloadKey]:
    """The tasks that the next run has an answer for."""
    known = {task.task.key for task in resolved if isinstance(task.lookup, ExactHit)}
    finished = {o.key for outcome in outcomes for o in outcome.tasks if answers_next_run(o)}
    return frozenset(known | finished)


def warmed_models(
    resolved: Sequence[ResolvedTask], known: frozenset[WorkloadKey]
) -> tuple[WarmedModel, ...]:
    """Every model on every target, in order."""
    tasks: dict[tuple[ModelPath, str], list[ResolvedTask]] = {}
    for each in resolved:
        for model in dict.fromkeys(use.model for use in each.task.uses):
            tasks.setdefault((model, each.task.target), []).append(each)
    return tuple(
        WarmedModel(
            model=model,
            target=target,
            tasks=len(found),
            known_before=sum(isinstance(each.lookup, ExactHit) for each in found),
            known=sum(each.task.key in known for each in found),
        )
        for (model, target), found in sorted(tasks.items())
    )
