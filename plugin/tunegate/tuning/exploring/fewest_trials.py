"""The next task of a search that is to teach others: all of them get as many candidates."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.tuning.next_task import DEFAULT_POLICY, Choice, RemainingBudget, SearchPolicy
from tunegate.tuning.task_state import TaskState


def fewest_trials(
    states: Sequence[TaskState], left: RemainingBudget, policy: SearchPolicy = DEFAULT_POLICY
) -> Choice | None:
    """The task with the fewest trials, the first of several; None when none may be given any now.
    What a batch promises does not count: a task that gains nothing teaches that."""
    if left.trials == 0 or (left.seconds is not None and left.seconds <= 0):
        return None
    ready = [index for index, state in enumerate(states) if _is_ready(state, policy)]
    if not ready:
        return None
    chosen = min(ready, key=lambda index: (states[index].trials, index))
    candidates = policy.batch if left.trials is None else min(policy.batch, left.trials)
    return Choice(chosen, candidates)


def _is_ready(state: TaskState, policy: SearchPolicy) -> bool:
    """Returns whether its search is free, and knows nearly all results of its last batch."""
    return state.is_open and not state.is_searching and state.in_flight <= policy.batch // 4
