"""Base and head get the same care: neither side of a model is searched further than the other.

Else the comparison would lean to the side that was tuned more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tunegate.artifacts.changes import ModelSide, Side
from tunegate.tuning.task_state import TaskState

_ROUNDING = 1e-6
"""The care of a side is a mean of whole numbers."""
_OTHER: dict[Side, Side] = {"base": "head", "head": "base"}


def evenly_served(
    states: Sequence[TaskState], ready: Sequence[int], rivals: Collection[int], batch: int
) -> list[int]:
    """The tasks of `ready`, in order, without those whose side is a batch ahead of the other.

    `rivals` are all that still get trials, now or later: a side waits for none but these.
    """
    care = _care_of_sides(states)
    waiting = {side for index in rivals for side in states[index].sides}

    def is_ahead(side: ModelSide) -> bool:
        other = (side[0], _OTHER[side[1]])
        return other in waiting and care[side] - care[other] >= batch - _ROUNDING

    even = [index for index in ready if not any(map(is_ahead, states[index].sides))]
    is_pending = any(state.in_flight for state in states)
    return even if even or is_pending else list(ready)


def _care_of_sides(states: Sequence[TaskState]) -> dict[ModelSide, float]:
    """The trials that each side's tasks have had on average, by their share of its time. What has
    nothing more to search counts for neither."""
    weights: dict[ModelSide, float] = {}
    trials: dict[ModelSide, float] = {}
    for state in filter(lambda state: state.is_open, states):
        for side in state.sides:
            weights[side] = weights.get(side, 0.0) + state.model_ms
            trials[side] = trials.get(side, 0.0) + state.model_ms * state.trials
    return {side: trials[side] / weight if weight else 0.0 for side, weight in weights.items()}
