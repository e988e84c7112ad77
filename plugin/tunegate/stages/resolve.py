"""Ask the cache about every task, once."""

from __future__ import annotations

from tunegate.artifacts.tasks import Resolution, ResolvedTask, TaskSet
from tunegate.config import Config
from tunegate.ports import TaskIndex
from tunegate.tuning.fastest_time import fastest_nanoseconds


def resolve(task_set: TaskSet, index: TaskIndex, config: Config) -> Resolution:
    """An exact hit, a transfer from the nearest shapes, or a counted miss for each task. Records
    that are faster than any hardware are not believed."""
    kinds = {target.name: target.kind for target in config.targets}
    found = index.lookup(
        [(task.key, task.shape) for task in task_set.tasks],
        {task.key: fastest_nanoseconds(task, kinds[task.target]) for task in task_set.tasks},
    )
    tasks = tuple(ResolvedTask(task, found[task.key]) for task in task_set.tasks)
    return Resolution(tasks=tasks, cache=index.use())
