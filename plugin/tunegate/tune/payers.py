"""The models that pay for the tuning of a task: those of which one side runs it, or runs it more
often.

What both sides of a model run equally often gets the same schedule on both, however good it is, so
a comparison gains nothing from tuning it. `tunegate warm` tunes it, where nothing is compared. One
more run on one side is different: untuned there, it would stand against what is tuned on the other.
"""

from __future__ import annotations

from collections import Counter

from tunegate.artifacts.changes import ModelPath, ModelSide
from tunegate.artifacts.tasks import TuningTask


def paying_sides(task: TuningTask) -> tuple[ModelSide, ...]:
    """Returns the side that runs the task more often, for each model whose sides differ in that."""
    surplus: Counter[ModelPath] = Counter()
    for use in task.uses:
        surplus[use.model] += use.weight if use.side == "head" else -use.weight
    uneven = ((model, count) for model, count in sorted(surplus.items()) if count)
    return tuple((model, "head" if count > 0 else "base") for model, count in uneven)


def is_shared(task: TuningTask) -> bool:
    """Returns whether both sides of every model that uses the task run it equally often."""
    return not paying_sides(task)
