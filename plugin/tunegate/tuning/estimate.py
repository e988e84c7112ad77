"""The end-to-end time as tuning sees it: over all tasks, whatever has become of them."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.tuning.task_state import TaskState

CurvePoint = tuple[float, float]
"""(seconds spent, estimated end-to-end milliseconds)."""


def end_to_end_ms(states: Sequence[TaskState]) -> float:
    """Sum of weight x best so far; of what was never measured, the expected time.

    A task that is parked, exhausted or was never started counts like any other: leaving it out
    would look like an improvement.
    """
    return sum(state.model_ms for state in states)


def extended(
    curve: tuple[CurvePoint, ...], *, seconds: float, estimate_ms: float
) -> tuple[CurvePoint, ...]:
    """The curve with this point, if the estimate has moved."""
    if curve and curve[-1][1] == estimate_ms:
        return curve
    return (*curve, (seconds, estimate_ms))
