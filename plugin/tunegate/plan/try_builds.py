"""Builds each model that would be tuned once, untuned. A model that cannot be built is not
tuned."""

from collections.abc import Mapping

import msgspec

from tunegate.artifacts.changes import ChangeSet, ModelPath, Side, has_base, side_named
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import Resolution, TaskSet, TuningTask
from tunegate.config import TargetConfig
from tunegate.models.export_models import export_models
from tunegate.plan.plan import plan
from tunegate.ports import Compiler, Progress
from tunegate.tools import ModelSource, Tools
from tunegate.wording import plural

TriedModel = tuple[ModelPath, Side, str]
"""A side of a model on a target."""


def plan_of_built(
    tools: Tools, tasks: TaskSet, resolution: Resolution, *, shards: int | None = None
) -> tuple[TaskSet, TuningPlan]:
    """Returns the plan, and the tasks that it covers: those of models that can be built."""
    config, progress = tools.config, tools.context.progress
    before = tools.source.config_before or config
    unmerged = {each.name for each in config.targets} - {each.name for each in before.targets}
    planned = plan(tasks, resolution, config, shards=shards, unmerged=unmerged)
    refused = try_builds(planned, source=tools.source, compiler=tools.compiler, progress=progress)
    if not refused:
        return tasks, planned
    remaining_tasks = without_refused(tasks, refused)
    remaining = resolution_of(remaining_tasks, resolution)
    planned = plan(remaining_tasks, remaining, config, shards=shards, unmerged=unmerged)
    notes = (*refusal_notes(refused, tasks.changes), *planned.notes)
    return remaining_tasks, msgspec.structs.replace(planned, notes=notes)


def try_builds(
    planned: TuningPlan, *, source: ModelSource, compiler: Compiler, progress: Progress
) -> dict[TriedModel, str]:
    """Returns why models that would be tuned cannot be built. GPU targets are not tried, because
    the planning machine may have none."""
    targets = {target.name: target for target in source.config.targets}
    trials = [
        tuned_side for tuned_side in _tuned_sides(planned) if _is_tried(targets[tuned_side[2]])
    ]
    if not trials:
        return {}
    progress.step(f"check: {_count(len(trials))} before tuning")
    models = export_models(planned.changes, source)
    jobs = [models.job(path, side, targets[name]) for path, side, name in trials]
    reasons = zip(trials, compiler.refusals(jobs), strict=True)
    return {each: reason for each, reason in reasons if reason}


def without_refused(tasks: TaskSet, refused: Mapping[TriedModel, str]) -> TaskSet:
    """Returns the tasks of models that can be built, and a note on each other model."""
    remaining_tasks = tuple(
        task for each in tasks.tasks if (task := _without_refused_uses(each, refused)).uses
    )
    notes = (*tasks.notes, *refusal_notes(refused, tasks.changes))
    return msgspec.structs.replace(tasks, tasks=remaining_tasks, notes=notes)


def resolution_of(tasks: TaskSet, resolution: Resolution) -> Resolution:
    """Returns the resolution of these tasks."""
    task_of = {(task.key, task.target): task for task in tasks.tasks}
    resolved = tuple(
        msgspec.structs.replace(task, task=task_of[task.task.key, task.task.target])
        for task in resolution.tasks
        if (task.task.key, task.task.target) in task_of
    )
    return msgspec.structs.replace(resolution, tasks=resolved)


def refusal_notes(refused: Mapping[TriedModel, str], changes: ChangeSet) -> tuple[str, ...]:
    """Returns a line for each model that is not tuned, with its name once."""
    is_compared = has_base(changes)
    return tuple(
        f"{side_named(path, side, is_compared=is_compared)} is not tuned on {target}: "
        + why.removeprefix(f"{path}: ")
        for (path, side, target), why in refused.items()
    )


def _tuned_sides(planned: TuningPlan) -> list[TriedModel]:
    """Returns every side of a model that trials are planned for. Heads come first: their failures
    are worth knowing early."""
    sides = {
        (use.model, use.side, shard.target)
        for shard in planned.shards
        for task in shard.tasks
        if task.trials
        for use in task.resolved.task.uses
    }
    return sorted(sides, key=lambda each: (each[1] == "base", each))


def _is_tried(target: TargetConfig) -> bool:
    return target.kind == "llvm"


def _without_refused_uses(task: TuningTask, refused: Mapping[TriedModel, str]) -> TuningTask:
    uses = tuple(use for use in task.uses if (use.model, use.side, task.target) not in refused)
    return msgspec.structs.replace(task, uses=uses)


def _count(builds: int) -> str:
    return plural(builds, "build")
