"""Builds each model that would be tuned once, untuned. A model that cannot be built is not
tuned."""

from collections.abc import Mapping

import msgspec

from tunegate.artifacts.changes import ChangeSet, ModelPath, Side, has_base, side_named
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import Resolution, TaskSet, TuningTask
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
    new_targets = {each.name for each in config.targets} - {each.name for each in before.targets}
    tuning_plan = plan(tasks, resolution, config, shards=shards, unmerged=new_targets)
    refusals = try_builds(
        tuning_plan, source=tools.source, compiler=tools.compiler, progress=progress
    )
    if not refusals:
        return tasks, tuning_plan
    remaining_tasks = without_refused(tasks, refusals)
    remaining = resolution_of(remaining_tasks, resolution)
    tuning_plan = plan(remaining_tasks, remaining, config, shards=shards, unmerged=new_targets)
    notes = (*refusal_notes(refusals, tasks.changes), *tuning_plan.notes)
    return remaining_tasks, msgspec.structs.replace(tuning_plan, notes=notes)


def try_builds(
    tuning_plan: TuningPlan, *, source: ModelSource, compiler: Compiler, progress: Progress
) -> dict[TriedModel, str]:
    """Returns why models that would be tuned cannot be built. GPU targets are not tried, because
    the planning machine may have none."""
    targets = {target.name: target for target in source.config.targets}
    trials = [side for side in _tuned_sides(tuning_plan) if targets[side[2]].kind == "llvm"]
    if not trials:
        return {}
    progress.step(f"check: {plural(len(trials), 'build')} before tuning")
    models = export_models(tuning_plan.changes, source)
    jobs = [models.job(path, side, targets[name]) for path, side, name in trials]
    reasons = zip(trials, compiler.refusals(jobs), strict=True)
    return {each: reason for each, reason in reasons if reason}


def without_refused(tasks: TaskSet, refusals: Mapping[TriedModel, str]) -> TaskSet:
    """Returns the tasks of models that can be built, and a note on each other model."""
    remaining_tasks = tuple(
        task for each in tasks.tasks if (task := _without_refused_uses(each, refusals)).uses
    )
    notes = (*tasks.notes, *refusal_notes(refusals, tasks.changes))
    return msgspec.structs.replace(tasks, tasks=remaining_tasks, notes=notes)


def resolution_of(tasks: TaskSet, resolution: Resolution) -> Resolution:
    """Returns the resolution of these tasks."""
    task_of = {(task.key, task.target): task for task in tasks.tasks}
    resolved_tasks = tuple(
        msgspec.structs.replace(task, task=task_of[task.task.key, task.task.target])
        for task in resolution.tasks
        if (task.task.key, task.task.target) in task_of
    )
    return msgspec.structs.replace(resolution, tasks=resolved_tasks)


def refusal_notes(refusals: Mapping[TriedModel, str], changes: ChangeSet) -> tuple[str, ...]:
    """Returns a line for each model that is not tuned, with its name once."""
    is_compared = has_base(changes)
    return tuple(
        f"{side_named(path, side, is_compared=is_compared)} is not tuned on {target}: "
        + why.removeprefix(f"{path}: ")
        for (path, side, target), why in refusals.items()
    )


def _tuned_sides(tuning_plan: TuningPlan) -> list[TriedModel]:
    """Returns every side of a model that trials are planned for. Heads come first: their failures
    are worth knowing early."""
    sides = {
        (use.model, use.side, shard.target)
        for shard in tuning_plan.shards
        for task in shard.tasks
        if task.trials
        for use in task.resolved.task.uses
    }
    return sorted(sides, key=lambda each: (each[1] == "base", each))


def _without_refused_uses(task: TuningTask, refusals: Mapping[TriedModel, str]) -> TuningTask:
    uses = tuple(use for use in task.uses if (use.model, use.side, task.target) not in refusals)
    return msgspec.structs.replace(task, uses=uses)
