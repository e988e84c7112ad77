"""Ask the cache about every task, once."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.tasks import CacheUse, Resolution, ResolvedTask, TaskSet
from tunegate.config import Config
from tunegate.ports import TaskIndex
from tunegate.tuning.fastest_time import fastest_nanoseconds
from tunegate.tuning.unfinished import taken_up


def resolve(task_set: TaskSet, index: TaskIndex, config: Config) -> Resolution:
    """An exact hit, a transfer from the nearest shapes, or a counted miss for each task. Records
    that are faster than any hardware are not believed, and what an earlier run left unfinished is no answer."""
    kinds = {target.name: target.kind for target in config.targets}
    found = index.lookup(
        [(task.key, task.shape) for task in task_set.tasks],
        {task.key: fastest_nanoseconds(task, kinds[task.target]) for task in task_set.tasks},
    )
    answers = {key: taken_up(key, lookup) for key, lookup in found.items()}
    tasks = tuple(ResolvedTask(task, answers[task.key]) for task in task_set.tasks)
    taken_up_again = sum(answers[key] is not lookup for key, lookup in found.items())
    return Resolution(tasks=tasks, cache=_counted(index.use(), taken_up_again))


def _counted(use: CacheUse, unfinished: int) -> CacheUse:
    if not unfinished:
        return use
    tasks = "1 task" if unfinished == 1 else f"{unfinished} tasks"
    note = f"cache: {tasks} that an earlier run did not finish: tuned on from what it has found"
    return msgspec.structs.replace(
        use,
        exact=use.exact - unfinished,
        transfer=use.transfer + unfinished,
        notes=(*use.notes, note),
    )
