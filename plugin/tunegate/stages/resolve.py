"""Ask the cache about every task, once."""

from __future__ import annotations

from tunegate.artifacts.tasks import Resolution, ResolvedTask, TaskSet
from tunegate.ports import TaskIndex


def resolve(task_set: TaskSet, index: TaskIndex) -> Resolution:
    """An exact hit, a transfer from the nearest shapes, or a counted miss for each task."""
    found = index.lookup([(task.key, task.shape) for task in task_set.tasks])
    tasks = tuple(ResolvedTask(task, found[task.key]) for task in task_set.tasks)
    return Resolution(tasks=tasks, cache=index.use())
