"""Why a task stopped."""

from __future__ import annotations

import pytest

from tunegate.tuning.improvement import Batch
from tunegate.tuning.next_task import TaskState
from tunegate.tuning.stopping import why_stopped

TRIED = (Batch(trials=8, seconds=4.0, best_ms=None),)


@pytest.mark.parametrize(
    ("state", "is_spent", "why"),
    [
        (TaskState(weight=1, prior_ms=1.0), True, "not-started"),
        (TaskState(weight=1, prior_ms=1.0, history=TRIED), False, "failed"),
        (
            TaskState(weight=1, prior_ms=1.0, best_ms=1.0, history=TRIED, exhausted=True),
            True,
            "finished",
        ),
        (TaskState(weight=1, prior_ms=1.0, best_ms=1.0, history=TRIED), True, "budget"),
        (TaskState(weight=1, prior_ms=1.0, best_ms=1.0, history=TRIED), False, "converged"),
    ],
)
def test_a_task_says_why_it_got_no_further_batch(
    state: TaskState, is_spent: bool, why: str
) -> None:
    assert why_stopped(state, is_spent=is_spent) == why
