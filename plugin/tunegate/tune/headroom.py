"""The share of an operator's time that more budget is expected to save."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from tunegate.artifacts.outcomes import CandidateCost, TaskOutcome
from tunegate.tune import improvement
from tunegate.tune.expected_time import TRANSFER_HEADROOM
from tunegate.tune.next_task import DEFAULT_POLICY, NOISE


def of_untuned(now_ms: float, tasks: Iterable[TaskOutcome]) -> float | None:
    """Returns the milliseconds saved if the task gains as much as the median tuned task of the run,
    None if that is nothing."""
    gains = [
        1 - task.best_ms / task.before_ms
        for task in tasks
        if task.trials and task.best_ms and task.before_ms
    ]
    return now_ms * statistics.median(gains) if gains else None


def of_unfinished(now_ms: float, task: TaskOutcome, *, more: int = 1) -> float:
    """Returns the milliseconds that as many trials again (or `more` times as many) save, by the
    task's improvement curve."""
    history = tuple(_history(task.costs)) or (
        improvement.MeasuredBatch(trials=task.trials, seconds=task.seconds, best_ms=task.best_ms),
    )
    return now_ms * improvement.expected_gain(
        history,
        more * task.trials,
        headroom=improvement.UNKNOWN_HEADROOM,
        noise=NOISE,
        pace=_pace(task.costs),
    )


def of_transferred(now_ms: float) -> float:
    """Returns the most milliseconds saved over a neighbour's schedule."""
    return now_ms * TRANSFER_HEADROOM


def _pace(history: Sequence[CandidateCost]) -> improvement.Pace:
    """Returns the pace of the search, by how its first candidate was chosen: by prior knowledge, or
    at random."""
    first = next((cost for cost in history if cost.origin == "search"), None)
    return (
        improvement.INFORMED
        if first is not None and first.pick != "random"
        else improvement.FROM_NOTHING
    )


def _history(history: Iterable[CandidateCost]) -> Iterator[improvement.MeasuredBatch]:
    """Yields the batches in the order they came, of the usual size."""
    times: list[float] = []
    looks = (cost for cost in history if cost.stage == "quick")
    while costs := list(islice(looks, DEFAULT_POLICY.batch)):
        times += [cost.milliseconds for cost in costs if cost.milliseconds is not None]
        seconds = sum(cost.build_seconds + cost.run_seconds for cost in costs)
        yield improvement.MeasuredBatch(
            trials=len(costs), seconds=seconds, best_ms=min(times, default=None)
        )


# The end-to-end time as tuning estimates it, over all tasks in any state.

CurvePoint = tuple[float, float]
"""(seconds spent, estimated end-to-end milliseconds)."""


def end_to_end_ms(states: Sequence[improvement.TaskState]) -> float:
    """Returns the sum of weight x best time so far, or the expected time of a task never measured.
    Parked, exhausted and unstarted tasks count too: leaving them out would look like an
    improvement."""
    return sum(state.model_ms for state in states)
