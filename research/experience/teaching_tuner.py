"""A tuner that keeps what it measures for the cost models of others."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import NamedTuple

from research.experience.measured_tasks import MeasuredTasks, TaskIdentity
from tunegate.artifacts.changes import ModelPath, Side
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import Shard
from tunegate.artifacts.tasks import TuningTask
from tunegate.ports import Publish, Tuner
from tunegate.tune.prior import TaskExperience
from tunegate_cache.format.records import TuningRecord


class Lessons(NamedTuple):
    """The name that a task gets, and who keeps the line of it."""

    identify: Callable[[TuningTask], TaskIdentity]
    keep: Callable[[TaskExperience], None]


class TeachingTuner:
    """Tunes as its engine does, which describes its templates to `tasks`. When a shard ends,
    cancelled or not, each task that has enough measurements is kept once."""

    def __init__(self, tuner: Tuner, tasks: MeasuredTasks, lessons: Lessons) -> None:
        self._tuner, self._tasks, self._lessons = tuner, tasks, lessons

    @property
    def notes(self) -> Sequence[str]:
        return self._tuner.notes

    def tune(
        self, shard: Shard, models: Mapping[tuple[ModelPath, Side], ShapedModel], publish: Publish
    ) -> Generator[TaskOutcome, None, None]:
        def note_and_publish(records: Sequence[TuningRecord]) -> bool:
            self._tasks.enter(records)
            return publish(records)

        try:
            yield from self._tuner.tune(shard, models, note_and_publish)
        finally:
            self._keep(shard)

    def recheck(
        self, shard: Shard, models: Mapping[tuple[ModelPath, Side], ShapedModel]
    ) -> Iterator[TaskOutcome]:
        return self._tuner.recheck(shard, models)

    def _keep(self, shard: Shard) -> None:
        for planned in shard.tasks:
            task, lessons = planned.resolved.task, self._lessons
            found = self._tasks.experience(task, lessons.identify(task))
            if found is not None:
                lessons.keep(found)


_: type[Tuner] = TeachingTuner
