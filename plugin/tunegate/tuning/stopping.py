"""Why a task got no further batch, in the words of the report."""

from __future__ import annotations

from typing import Literal

from tunegate.tuning.next_task import TaskState

TaskStop = Literal["finished", "converged", "budget", "failed", "not-started"]


def why_stopped(state: TaskState, *, is_spent: bool) -> TaskStop:
    """`is_spent`: the run ended at its budget, not for want of anything worth trying."""
    if not state.history:
        return "not-started"
    if state.best_ms is None:
        return "failed"
    if state.exhausted:
        return "finished"
    return "budget" if is_spent else "converged"
