from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tests.support.tuning_tasks import make_outcome

from research.experience.measured_tasks import MIN_ROWS, MeasuredTasks
from research.experience.teaching_tuner import Lessons, TeachingTuner
from research.tests.experience.test_measured_tasks import IDENTITY, SKETCHES, TASK, record
from tunegate.artifacts.changes import ModelPath, Side
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import Budget, PlannedTask, Shard
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.ports import Publish
from tunegate.tune.prior import TaskExperience
from tunegate.tune.searchers import Describe
from tunegate_cache.format.records import Miss, TuningRecord

SHARD = Shard(
    index=0,
    target="cpu",
    labels=(),
    tasks=(PlannedTask(resolved=ResolvedTask(TASK, Miss("off")), trials=9, gain_ms=0.0),),
    budget=Budget(seconds=None, trials=None),
    predicted_seconds=0.0,
)


class BatchesOfOne:
    """A tuner whose batches have one candidate each."""

    notes = ("a note",)

    def __init__(self, describe: Describe) -> None:
        self._describe = describe

    def tune(
        self, shard: Shard, models: Mapping[tuple[ModelPath, Side], ShapedModel], publish: Publish
    ) -> Iterator[TaskOutcome]:
        self._describe(TASK.key.workload, SKETCHES)
        for number in range(MIN_ROWS + 1):
            publish([record(number)])
            yield make_outcome()

    def recheck(
        self, shard: Shard, models: Mapping[tuple[ModelPath, Side], ShapedModel]
    ) -> Iterator[TaskOutcome]:
        yield make_outcome()


def taught(kept: list[TaskExperience]) -> TeachingTuner:
    tasks = MeasuredTasks()
    return TeachingTuner(
        BatchesOfOne(tasks.describe), tasks, Lessons(lambda _: IDENTITY, kept.append)
    )


def test_a_task_is_kept_once_when_its_shard_ends_and_is_published_as_ever() -> None:
    kept: list[TaskExperience] = []
    published: list[TuningRecord] = []

    def publish(records: Sequence[TuningRecord]) -> bool:
        published.extend(records)
        return True

    assert len(list(taught(kept).tune(SHARD, {}, publish))) == len(published) == MIN_ROWS + 1
    assert [len(task.rows) for task in kept] == [MIN_ROWS + 1]
    assert taught(kept).notes == ("a note",)


def test_a_run_that_is_cancelled_keeps_what_it_has() -> None:
    kept: list[TaskExperience] = []
    batches = taught(kept).tune(SHARD, {}, lambda _: True)
    for _ in range(MIN_ROWS):
        next(batches)
    batches.close()
    assert [len(task.rows) for task in kept] == [MIN_ROWS]


def test_schedules_that_are_measured_again_teach_nothing() -> None:
    kept: list[TaskExperience] = []
    assert len(list(taught(kept).recheck(SHARD, {}))) == 1
    assert not kept
