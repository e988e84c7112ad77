"""Trimmer's own preemption (Borowiec et al., IEEE CLOUD 2022), as a peer
of ours: tasks in turn, 2/2/2.

A task ends with the third batch in a row that gains nothing; the run ends with the third round in a
row after which the mean over two rounds has not fallen. Unlike the authors' code this sums weight x
best so far over all tasks, ended ones too, and a gain within the noise is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from benchmarks.kit.turns import BATCH, is_closed, next_in_turn
from tunegate.tune.improvement import TaskState
from tunegate.tune.next_task import Choice

TASK_PLATEAU, MODEL_PLATEAU, WINDOW = 2, 2, 2
NOISE = 0.01


def paper_rule(states: Sequence[TaskState], *_: object) -> Choice | None:
    if plateau(means(rounds(states))) > MODEL_PLATEAU:
        return None
    index = next_in_turn(states, is_ended)
    return None if index is None else Choice(index, BATCH)


def is_ended(state: TaskState) -> bool:
    times = [batch.best_ms for batch in state.history if batch.best_ms is not None]
    return is_closed(state) or plateau(times) > TASK_PLATEAU


def rounds(states: Sequence[TaskState]) -> list[float]:
    """The end-to-end estimate after each round that every task has had, or has no more need of."""
    open_tasks = [state for state in states if not is_ended(state)]
    count = min((len(state.history) for state in open_tasks or states), default=0)
    return [
        sum(state.weight * best_after(state, number) for state in states) for number in range(count)
    ]


def best_after(state: TaskState, number: int) -> float:
    known = [batch.best_ms for batch in state.history[: number + 1] if batch.best_ms is not None]
    return known[-1] if known else state.prior_ms


def means(sums: Sequence[float]) -> list[float]:
    return [sum(sums[n - WINDOW : n]) / WINDOW for n in range(WINDOW, len(sums) + 1)]


def plateau(values: Sequence[float]) -> int:
    """Returns the number of steps at the end that have gained nothing."""
    steps = [after > (1 - NOISE) * before for before, after in pairwise(values)]
    return next((n for n, flat in enumerate(reversed(steps)) if not flat), len(steps))
