"""Who pays for the tuning of a task: the models in which only one side has it.

What both sides of a model have gets the same schedule on both, however good it is, so a comparison
gains nothing from tuning it. `tunegate warm` tunes it, where nothing is compared.
"""

from __future__ import annotations

from tunegate.artifacts.changes import ModelPath, ModelSide, Side
from tunegate.artifacts.tasks import TuningTask


def paying_sides(task: TuningTask) -> tuple[ModelSide, ...]:
    """The side that has the task, for each model of which the other side does not."""
    sides: dict[ModelPath, set[Side]] = {}
    for use in task.uses:
        sides.setdefault(use.model, set()).add(use.side)
    return tuple((model, found.pop()) for model, found in sorted(sides.items()) if len(found) == 1)


def is_shared(task: TuningTask) -> bool:
    """Whether both sides of every model that uses the task have it."""
    return not paying_sides(task)
