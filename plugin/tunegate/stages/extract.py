"""Find the tuning tasks of every changed model, on both sides: each task once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from tunegate.artifacts.changes import ChangeSet, ModelChange, ModelPath, Side
from tunegate.artifacts.tasks import TaskSet, TaskUse, TuningTask
from tunegate.config import Config, TargetConfig
from tunegate.errors import ModelError, UnsupportedModelError
from tunegate.ports import Compiler, ModelJob, Progress, Repository
from tunegate.selection import runtimes_of, shapes_for
from tunegate.stages.export_models import ModelFiles, export_models
from tunegate_cache.format.records import WorkloadKey


def extract(
    changes: ChangeSet,
    config: Config,
    repository: Repository,
    compiler: Compiler,
    workdir: Path,
    progress: Progress,
) -> TaskSet:
    """Weights do not make tasks, so both sides of a weights-only change have the same ones.

    Raises ModelError for a head model that cannot be compiled; it is a note, like a base model that
    cannot be, where it is a valid model and its target allows ONNX Runtime.
    """
    files, broken = export_models(changes, repository, workdir)
    wanted = _wanted(changes, config, files)
    if wanted:
        progress.step(f"extract: {_count(len({path for path, _, _ in wanted}))}")
    answers = compiler.tasks([_job(config, files, *which) for which in wanted])
    found = merge(changes, wanted, answers)
    notes = [f"no baseline for {path}: {reason}" for path, reason in broken.items()]
    return msgspec.structs.replace(
        found, notes=(*found.notes, *notes), broken_bases={**broken, **found.broken_bases}
    )


Wanted = tuple[ModelPath, Side, TargetConfig]


def _wanted(changes: ChangeSet, config: Config, files: ModelFiles) -> list[Wanted]:
    """Head and base of a model in one file need one look each only where they differ."""
    targets = {target.name: target for target in config.targets}
    return [
        (change.path, side, targets[name])
        for change in changes.models
        for name in change.targets
        if "tvm" in runtimes_of(targets[name])
        for side in _sides(change, files)
    ]


def _sides(change: ModelChange, files: ModelFiles) -> list[Side]:
    sides: list[Side] = []
    if (change.path, "head") in files:
        sides.append("head")
    if (change.path, "base") in files and not _has_tasks_of_head(change):
        sides.append("base")
    return sides


def _has_tasks_of_head(change: ModelChange) -> bool:
    """Weights never change a task, so one look at such a model is enough for both sides."""
    return change.change == "weights-only"


def _job(
    config: Config, files: ModelFiles, path: ModelPath, side: Side, target: TargetConfig
) -> ModelJob:
    return ModelJob(
        file=files[path, side], path=path, shapes=shapes_for(config, path), target=target
    )


def merge(
    changes: ChangeSet,
    wanted: Sequence[Wanted],
    answers: Sequence[Sequence[TuningTask] | ModelError],
) -> TaskSet:
    """One task for each key and target, with a use for each model and side that has it."""
    tasks: dict[tuple[WorkloadKey, str], TuningTask] = {}
    notes: list[str] = []
    broken: dict[ModelPath, str] = {}
    retrained = {change.path for change in changes.models if _has_tasks_of_head(change)}
    for (path, side, target), answer in zip(wanted, answers, strict=True):
        if isinstance(answer, ModelError):
            notes.append(_untuned(path, side, target, answer))
            if side == "base" and not _runs_uncompiled(answer, target):
                broken[path] = str(answer)
            continue
        for task in answer:
            use = msgspec.structs.replace(task.uses[0], model=path, side=side)
            _add(tasks, task, use)
            if path in retrained:
                _add(tasks, task, msgspec.structs.replace(use, side="base"))
    return TaskSet(
        changes=changes, tasks=tuple(tasks.values()), notes=tuple(notes), broken_bases=broken
    )


def _runs_uncompiled(error: ModelError, target: TargetConfig) -> bool:
    return isinstance(error, UnsupportedModelError) and "onnxruntime" in runtimes_of(target)


def _untuned(path: ModelPath, side: Side, target: TargetConfig, error: ModelError) -> str:
    if _runs_uncompiled(error, target):
        return f"{path} ({side}) cannot be compiled, ONNX Runtime runs it: {error}"
    if side == "head":
        raise error
    return f"no baseline for {path}: the base does not compile ({error})"


def _add(tasks: dict[tuple[WorkloadKey, str], TuningTask], task: TuningTask, use: TaskUse) -> None:
    known = tasks.get((task.key, task.target))
    uses = (use,) if known is None else (*known.uses, use)
    tasks[task.key, task.target] = msgspec.structs.replace(known or task, uses=uses)


def _count(models: int) -> str:
    return "1 model" if models == 1 else f"{models} models"
