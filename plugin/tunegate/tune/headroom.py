"""The share of an operator's time that more budget is expected to save."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from tunegate.artifacts.outcomes import CandidateCost, TaskOutcome
from tunegate.tune.expected_time import TRANSFER_HEADROOM
from tunegate.tune.improvement import (
    FROM_NOTHING,
    INFORMED,
    UNKNOWN_HEADROOM,
    MeasuredBatch,
    Pace,
    TaskState,
    expected_gain,
)
from tunegate.tune.next_task import DEFAULT_POLICY


def of_untuned(now_ms: float, tasks: Iterable[TaskOutcome]) -> float | None:
    """Milliseconds, if it gains as much as the median of what the run did tune; None where that is
    nothing."""
    gains = [
        1 - task.best_ms / task.before_ms
        for task in tasks
        if task.trials and task.best_ms and task.before_ms
    ]
    return now_ms * statistics.median(gains) if gains else None


def of_unfinished(now_ms: float, task: TaskOutcome, *, more: int = 1) -> float:
    """Milliseconds, of as many trials again (or `more` times as many), by the improvement curve of
    the task."""
    history = tuple(_history(task.costs)) or (
        MeasuredBatch(trials=task.trials, seconds=task.seconds, best_ms=task.best_ms),
    )
    return now_ms * expected_gain(
        history,
        more * task.trials,
        headroom=UNKNOWN_HEADROOM,
        noise=DEFAULT_POLICY.noise,
        pace=_pace(task.costs),
    )


def of_transferred(now_ms: float) -> float:
    """Milliseconds at most, over a neighbour's schedule."""
    return now_ms * TRANSFER_HEADROOM


def _pace(history: Sequence[CandidateCost]) -> Pace:
    """Returns the pace of the search: its first candidate was picked for a reason, or at random."""
    first = next((cost for cost in history if cost.origin == "search"), None)
    return INFORMED if first is not None and first.pick != "random" else FROM_NOTHING


def _history(history: Iterable[CandidateCost]) -> Iterator[MeasuredBatch]:
    """The looks in the order they came, a usual batch of them at a time."""
    times: list[float] = []
    looks = (cost for cost in history if cost.stage == "quick")
    while costs := list(islice(looks, DEFAULT_POLICY.batch)):
        times += [cost.milliseconds for cost in costs if cost.milliseconds is not None]
        seconds = sum(cost.build_seconds + cost.run_seconds for cost in costs)
        yield MeasuredBatch(trials=len(costs), seconds=seconds, best_ms=min(times, default=None))


# The end-to-end time as tuning sees it: over all tasks, whatever has become of them.

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
