"""Ask the cache about every task, once."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.tasks import CacheUse, Resolution, ResolvedTask, TaskSet
from tunegate.config import Config
from tunegate.ports import TaskIndex
from tunegate.tuning.claims import claims_beside
from tunegate.tuning.fastest_time import fastest_nanoseconds
from tunegate.tuning.unfinished import as_resumed


def resolve(task_set: TaskSet, index: TaskIndex, config: Config) -> Resolution:
    """An exact hit, a transfer from the nearest shapes, or a counted miss for each task, from
    trusted zones; and beside it what only the run's own zone claims. Records that are faster than
    any hardware are not believed, and what an earlier run left unfinished is no answer."""
    kinds = {target.name: target.kind for target in config.targets}
    wanted = [(task.key, task.shape) for task in task_set.tasks]
    fastest = {task.key: fastest_nanoseconds(task, kinds[task.target]) for task in task_set.tasks}
    found = index.lookup(wanted, fastest)
    own = index.claims(wanted, fastest)
    answers = {key: as_resumed(key, lookup) for key, lookup in found.items()}
    claims = {key: claims_beside(answer, own.get(key)) for key, answer in answers.items()}
    tasks = tuple(
        ResolvedTask(task, answers[task.key], claims[task.key]) for task in task_set.tasks
    )
    resumed = sum(answers[key] is not lookup for key, lookup in found.items())
    claimed = sum(each is not None for each in claims.values())
    return Resolution(tasks=tasks, cache=_with_claims(_counted(index.use(), resumed), claimed))


def _with_claims(use: CacheUse, claimed: int) -> CacheUse:
    if not claimed:
        return use
    tasks = "1 task" if claimed == 1 else f"{claimed} tasks"
    note = (
        f"cache: zone {use.zone}, which is not trusted, has schedules of its own for {tasks}: "
        "measured in this run before they count"
    )
    return msgspec.structs.replace(use, claimed=claimed, notes=(*use.notes, note))


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
