"""Finds the tuning tasks of every changed model, on both sides: each task once."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from tunegate.artifacts.candidates import CandidateBuild, Candidates
from tunegate.artifacts.changes import (
    ChangeSet,
    ModelPath,
    ModelSide,
    Side,
    has_base,
    side_named,
)
from tunegate.artifacts.tasks import TaskSet, TaskUse, TuningTask
from tunegate.config import TargetConfig
from tunegate.errors import ModelError, UnsupportedModelError
from tunegate.models.export_models import ExportedModels, export_models
from tunegate.models.prepared import NOT_LOADED
from tunegate.ports import ModelJob, Progress, Shapes
from tunegate.tools import ModelSource
from tunegate.wording import plural
from tunegate_cache.format.records import WorkloadKey

Lists = Callable[[Sequence[ModelJob]], Sequence[Sequence[TuningTask] | ModelError]]
"""Lists the tasks of models, in the order of the jobs."""


def extract(
    changes: ChangeSet, *, source: ModelSource, lists: Lists, progress: Progress
) -> TaskSet:
    """Returns the tasks of both sides. A change of weights rarely changes tasks, but it can. A
    model that cannot be read or compiled has no tasks and gets a note: its build decides whether
    another runtime ships it."""
    models = export_models(changes, source)
    triples = _models_to_extract(changes, models, source.candidates)
    if triples:
        models_to_open = len({path for path, _, _ in triples})
        progress.step(f"extract: {plural(models_to_open, 'model')}")
    answers = lists([models.job(*triple) for triple in triples])
    task_set = merge_tasks(changes, triples, answers, source.candidates)
    notes = [*task_set.notes, *unusable_notes(models)]
    notes += [_resized_note(*each, shapes) for each, shapes in models.resized.items()]
    for note in notes:
        progress.warn(note)
    bases = {path: why for (path, side), why in models.unreadable.items() if side == "base"}
    return msgspec.structs.replace(
        task_set, notes=tuple(notes), broken_bases={**bases, **task_set.broken_bases}
    )


def unusable_notes(models: ExportedModels) -> Iterator[str]:
    """Yields notes on models that the verdict will call an error, so that nobody waits until
    then."""
    is_compared = any(side == "base" for _, side in (*models.files, *models.unreadable))
    for (path, side), why in models.unreadable.items():
        name = side_named(path, side, is_compared=is_compared)
        yield f"{name} cannot be used: {why.removeprefix(f'{path}: ')}"


ExtractKey = tuple[ModelPath, Side, TargetConfig]
_SIDES: tuple[Side, Side] = ("head", "base")
"""Heads come first: a failure of a head is an error, and worth knowing early."""


def _models_to_extract(
    changes: ChangeSet, models: ExportedModels, candidates: Candidates
) -> list[ExtractKey]:
    targets = {target.name: target for target in models.config.targets}
    return [
        (change.path, side, targets[name])
        for change in changes.models
        for name in change.targets
        if any(candidate.is_tuned for candidate in candidates[name])
        for side in _SIDES
        if (change.path, side) in models.files
    ]


def merge_tasks(
    changes: ChangeSet,
    keys: Sequence[ExtractKey],
    answers: Sequence[Sequence[TuningTask] | ModelError],
    candidates: Candidates,
) -> TaskSet:
    """Returns one task for each key and target, with a use for each model and side that has it."""
    tasks: dict[tuple[WorkloadKey, str], TuningTask] = {}
    notes: list[str] = []
    broken_bases: dict[ModelPath, str] = {}
    for (path, side, target), answer in zip(keys, answers, strict=True):
        if isinstance(answer, ModelError):
            name = side_named(path, side, is_compared=has_base(changes))
            notes.append(_refusal_note(name, (path, side), answer, candidates[target.name]))
            if side == "base" and not _may_run(answer, candidates[target.name]):
                broken_bases[path] = str(answer)
            continue
        for task in answer:
            use = msgspec.structs.replace(task.uses[0], model=path, side=side)
            _add(tasks, task, use)
    return TaskSet(
        changes=changes, tasks=tuple(tasks.values()), notes=tuple(notes), broken_bases=broken_bases
    )


def _may_run(error: ModelError, candidates: Sequence[CandidateBuild]) -> bool:
    """Returns whether another candidate may run a model that cannot be compiled."""
    is_valid = isinstance(error, UnsupportedModelError)
    return is_valid and not all(candidate.is_tuned for candidate in candidates)


def _refusal_note(
    name: str, model_side: ModelSide, error: ModelError, candidates: Sequence[CandidateBuild]
) -> str:
    """Returns why the compiler does not take a model, and what runs it instead, if anything."""
    path, side = model_side
    note = f"{name} is not tuned: {str(error).removeprefix(f'{path}: ')}"
    titles = [
        candidate.title
        for candidate in candidates
        if not candidate.is_tuned and not candidate.variant
    ]
    is_valid = isinstance(error, UnsupportedModelError) and NOT_LOADED not in str(error)
    if not titles or not is_valid:
        return note
    what = "gated" if side == "head" else "measured"
    return f"{note.removesuffix('.')}; it is still {what}, by {' and '.join(titles)}"


def _resized_note(path: ModelPath, side: Side, shapes: Shapes) -> str:
    sizes = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
    who = path if side == "head" else f"the base of {path}"
    return f"{who} is run at the sizes of the {'base' if side == 'head' else 'head'}: {sizes}"


def _add(tasks: dict[tuple[WorkloadKey, str], TuningTask], task: TuningTask, use: TaskUse) -> None:
    existing = tasks.get((task.key, task.target))
    uses = (use,) if existing is None else (*existing.uses, use)
    tasks[task.key, task.target] = msgspec.structs.replace(existing or task, uses=uses)
