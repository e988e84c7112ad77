"""Short names for the tasks of a plan: as short as tells them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tunegate.artifacts.tasks import TuningTask

_DIGITS = 12


def task_names(tasks: Sequence[TuningTask]) -> tuple[str, ...]:
    """Returns a name for each task, by which `tasks_named` finds it: that of a layer, with its
    model where another task has the same, with the start of its digest where even that is not
    enough."""
    names = [(task.uses[0].name, _with_model(task)) for task in tasks]
    short = Counter(name for name, _ in names)
    longer = Counter(name for _, name in names)
    return tuple(
        name
        if short[name] == 1
        else with_model
        if longer[with_model] == 1
        else f"{with_model}:{task.key.workload[:_DIGITS]}"
        for (name, with_model), task in zip(names, tasks, strict=True)
    )


def tasks_named(tasks: Sequence[TuningTask], wanted: str) -> tuple[int, ...]:
    """The places of the tasks that a text may mean: a name of theirs, a layer, the beginning of a
    digest, or else a part of a name."""
    names = task_names(tasks)
    for fits in (_is_name, _is_layer, _is_part):
        found = [at for at, task in enumerate(tasks) if fits(wanted, names[at], task)]
        if found:
            return tuple(found)
    return ()


def _is_name(wanted: str, name: str, task: TuningTask) -> bool:
    return wanted == name or task.key.workload.startswith(wanted)


def _is_layer(wanted: str, _: str, task: TuningTask) -> bool:
    return wanted in _layers(task)


def _is_part(wanted: str, name: str, task: TuningTask) -> bool:
    return wanted in name or any(wanted in layer for layer in _layers(task))


def _layers(task: TuningTask) -> set[str]:
    """A task may stand for several layers; each of its labels names one or two of them."""
    parts = {part for use in task.uses for part in (use.name, *use.name.split(", "))}
    return parts | {f"{use.model}:{use.name}" for use in task.uses}


def _with_model(task: TuningTask) -> str:
    return f"{task.uses[0].model}:{task.uses[0].name}"
