"""A tuning run as a curve: the end-to-end estimate by the second at which each record came."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.tasks import TuningTask
from tunegate_cache.format.records import TuningRecord, WorkloadKey


class Run(msgspec.Struct, frozen=True):
    """The records by the second they came, and what each task cost."""

    found: tuple[tuple[float, TuningRecord], ...]
    outcomes: dict[WorkloadKey, TaskOutcome]

    @property
    def trials(self) -> int:
        return sum(outcome.trials for outcome in self.outcomes.values())


def defaults(runs: Iterable[Run]) -> dict[WorkloadKey, float]:
    """The time of each task's default schedule, from whichever run has it."""
    known: dict[WorkloadKey, float] = {}
    for _, record in itertools.chain.from_iterable(run.found for run in runs):
        if record.status == "ok" and not record.template:
            known.setdefault(record.key, record.median_ms)
    return known


def curve(
    tasks: Sequence[TuningTask], run: Run, known: Mapping[WorkloadKey, float]
) -> list[tuple[float, float]]:
    """Seconds and the estimate of the model at that time."""
    best = {task.key: known.get(task.key, 0.0) for task in tasks}
    points = [(0.0, weighted(tasks, best))]
    for seconds, record in run.found:
        if record.status == "ok":
            best[record.key] = min(best[record.key] or record.median_ms, record.median_ms)
            points.append((seconds, weighted(tasks, best)))
    return points


def seconds_to(goal_ms: float, points: Iterable[tuple[float, float]]) -> float:
    """The seconds after which a curve is at the goal or below; infinite where it never is."""
    return next((seconds for seconds, ms in points if ms <= goal_ms), math.inf)


def end_ms(tasks: Sequence[TuningTask], run: Run, known: Mapping[WorkloadKey, float]) -> float:
    """The end-to-end time by the records that the cache would build with: it believes a look less
    than a confirmed measurement."""
    best = {task.key: (math.inf, known.get(task.key, 0.0)) for task in tasks}
    for _, record in run.found:
        if record.status == "ok":
            best[record.key] = min(best[record.key], (record.shrunk_ms, record.median_ms))
    return weighted(tasks, {key: ms for key, (_, ms) in best.items()})


def weighted(tasks: Sequence[TuningTask], milliseconds: Mapping[WorkloadKey, float]) -> float:
    """The sum of calls x time over all tasks."""
    return sum(use.weight * milliseconds[task.key] for task in tasks for use in task.uses)
