"""The tasks of a model that are known after tuning: finished, now or by an earlier run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tunegate.artifacts.builds import Build, CellBuilds, unbuilt
from tunegate.artifacts.candidates import FLOAT32, CandidateBuild
from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.artifacts.warmed import WarmedModel, WarmedShipping
from tunegate.tuning.standing.answered import answers_next_run
from tunegate.tuning.standing.model_keys import ModelOnTarget
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


def shippings(
    places: Iterable[ModelOnTarget],
    builds: Iterable[CellBuilds],
    elected: Mapping[ModelOnTarget, CandidateBuild],
    remembered: Collection[ModelOnTarget],
) -> tuple[WarmedShipping, ...]:
    """Returns the candidate that each model ships with: by its build of this run, else as it was
    `elected`, by an earlier run where that is `remembered`."""
    built = {(each.cell.model, each.cell.target): each for each in builds}
    return tuple(
        _of_build(built[where])
        if where in built
        else _of_elected(where, elected[where], is_remembered=where in remembered)
        for where in places
        if where in built or where in elected
    )


def _of_build(built: CellBuilds) -> WarmedShipping:
    head = built.head or unbuilt("its file is missing")
    return WarmedShipping(
        model=built.cell.model,
        target=built.cell.target,
        title="" if head.error else head.title,
        estimates=() if head.error else head.error_estimate,
        is_drawn=not any(each.is_given for each in head.inputs),
        reason=head.error or "",
        trouble=() if head.error else tuple(_trouble(head)),
    )


def _trouble(head: Build) -> Iterator[str]:
    """Yields problems that the next run may pay for again, since nobody decided them."""
    if head.without_picks:
        yield f"built without transferred schedules, with them: {head.without_picks}"
    if head.without_graphs:
        yield f"built without CUDA graphs, with them: {head.without_graphs}"
    refused = head.choice.refused if head.choice is not None else ()
    yield from (f"{each.title}: {each.reason}" for each in refused if not each.is_lasting)


def _of_elected(
    where: ModelOnTarget, winner: CandidateBuild, *, is_remembered: bool
) -> WarmedShipping:
    model, target = where
    return WarmedShipping(
        model=model,
        target=target,
        title=winner.title,
        has_unknown_error=winner.precision != FLOAT32,
        is_remembered=is_remembered,
    )


def _count(found: Sequence[ResolvedTask], part: frozenset[TaskOnTarget]) -> int:
    return sum((each.task.key, each.task.target) in part for each in found)
