"""Splits tasks into those that teach a cost model and those that judge it: never of one layer or
one model both.

One-Shot Tuner's own split is by row, and its sampler draws from all rows: it judges what it taught.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from tunegate.tune.prior import TaskExperience

FOLDS = 8


class Fold(NamedTuple):
    """`left_out` are the tasks that are judged by what `taught` says."""

    taught: tuple[TaskExperience, ...]
    left_out: tuple[TaskExperience, ...]


def folds(tasks: Sequence[TaskExperience], count: int = FOLDS) -> Iterator[Fold]:
    """Each task is left out once. No task is taught that shares its layer, or any of its models,
    with one that is left out. Folds in which nothing is left to teach are not made."""
    places = {key: at % count for at, key in enumerate(sorted({_key(task) for task in tasks}))}
    for number in range(count):
        left_out = tuple(task for task in tasks if places[_key(task)] == number)
        layers = {layer_of(task) for task in left_out}
        taught = unseen(tasks, layers, {model for task in left_out for model in task.models})
        if taught and left_out:
            yield Fold(taught, left_out)


def unseen(
    tasks: Sequence[TaskExperience], layers: Collection[str], models: Iterable[str]
) -> tuple[TaskExperience, ...]:
    """The tasks that have none of these layers, and stand in none of these models."""
    models = frozenset(models)
    return tuple(
        task for task in tasks if layer_of(task) not in layers and models.isdisjoint(task.models)
    )


def layer_of(task: TaskExperience) -> str:
    """Older data say no layer, and have one task for each name."""
    return task.layer or task.name


def _key(task: TaskExperience) -> str:
    return min(task.models, default=layer_of(task))
