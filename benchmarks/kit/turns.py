"""Tasks in turn: what a scheduler without an objective does, as a peer of the product's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tunegate.tune.improvement import TaskState
from tunegate.tune.next_task import Choice, RemainingBudget

BATCH = 8


def is_closed(state: TaskState) -> bool:
    """Nothing is to be had of it."""
    return state.exhausted or state.headroom <= 0


def next_in_turn(
    states: Sequence[TaskState], is_ended: Callable[[TaskState], bool] = is_closed
) -> int | None:
    """The task with the fewest batches of those whose last batch is nearly back."""
    ready = [
        (len(state.history), index)
        for index, state in enumerate(states)
        if state.in_flight <= BATCH // 4 and not is_ended(state)
    ]
    return min(ready)[1] if ready else None


def in_turn(states: Sequence[TaskState], left: RemainingBudget, *_: object) -> Choice | None:
    index = next_in_turn(states)
    if index is None or left.trials == 0:
        return None
    return Choice(index, BATCH if left.trials is None else min(BATCH, left.trials))
