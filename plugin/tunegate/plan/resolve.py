"""Looks up every task in the cache: once for a plan, and again for a shard that begins later."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from tunegate.artifacts.plans import PlannedTask, Shard
from tunegate.artifacts.tasks import (
    CacheUse,
    Resolution,
    ResolvedTask,
    Skipped,
    TaskSet,
    TuningTask,
)
from tunegate.config import Config
from tunegate.ports import TaskIndex
from tunegate.tune.claims import as_resumed, claims_beside, resume_point
from tunegate.tune.expected_time import IsFarBehind, nobody, skipped_tasks
from tunegate.wording import plural
from tunegate_cache.format.names import group_of
from tunegate_cache.format.records import ExactHit, Lookup, Miss, TransferHit
from tunegate_cache.format.target_key import neighbours


def resolve(
    task_set: TaskSet, index: TaskIndex, config: Config, is_far_behind: IsFarBehind = nobody
) -> Resolution:
    """Returns an exact hit, a transfer from the nearest shapes, or a counted miss for each task,
    from trusted zones, and the claims of the run's own zone on the tasks that this run tunes.
    Records faster than any hardware are dropped, and unfinished searches are not answers.
    `is_far_behind` returns the models that stay far behind another runtime."""
    kinds = {target.name: target.kind for target in config.targets}
    fastest = {task.key: fastest_nanoseconds(task, kinds[task.target]) for task in task_set.tasks}
    lookups = index.lookup([(task.key, task.shape) for task in task_set.tasks], fastest)
    skips = skipped_tasks(task_set.tasks, is_far_behind(task_set.tasks))
    to_tune = [task for task in task_set.tasks if not skips[task.key, task.target]]
    claims = index.claims([(task.key, task.shape) for task in to_tune], fastest)
    answers = {key: as_resumed(key, lookup) for key, lookup in lookups.items()}
    tasks = tuple(
        _resolve_task(task, answers[task.key], claims.get(task.key), skips[task.key, task.target])
        for task in task_set.tasks
    )
    resumed_keys = {key for key, lookup in lookups.items() if answers[key] is not lookup}
    claim_count = sum(task.claims is not None for task in tasks)
    other_runners = tuple(_missed_runners(tasks, index))
    use = _without_unfinished(
        index.use(), len(resumed_keys), sum(task.key in resumed_keys for task in to_tune)
    )
    use = msgspec.structs.replace(use, notes=(*use.notes, *other_runners))
    return Resolution(tasks=tasks, cache=_with_claims(use, claim_count))


def refresh_shard(shard: Shard, index: TaskIndex) -> Shard:
    """Returns the shard with the cache's present answers for every task still to tune. A killed
    attempt has published what it finished, so the next one continues there."""
    to_tune = [each.resolved.task for each in shard.tasks if each.trials]
    if not to_tune:
        return shard
    answers = index.lookup([(task.key, task.shape) for task in to_tune])
    tasks = tuple(_with_answer(each, answers.get(each.resolved.task.key)) for each in shard.tasks)
    return msgspec.structs.replace(shard, tasks=tasks)


def _resolve_task(
    task: TuningTask, answer: Lookup, own: ExactHit | TransferHit | None, skip_reason: Skipped
) -> ResolvedTask:
    if skip_reason:
        return ResolvedTask(task, answer, skipped=skip_reason)
    return ResolvedTask(task, answer, claims_beside(answer, own))


def _missed_runners(tasks: Sequence[ResolvedTask], index: TaskIndex) -> Iterator[str]:
    """Yields a note for each target without any record, if the cache is full of records for runners
    of another size."""
    by_target: dict[str, list[ResolvedTask]] = defaultdict(list)
    for task in tasks:
        by_target[task.task.target].append(task)
    for target, tasks_of_target in by_target.items():
        first = tasks_of_target[0].task
        is_all_absent = all(
            isinstance(each.lookup, Miss) and each.lookup.reason == "absent"
            for each in tasks_of_target
        )
        others = neighbours(json.loads(first.attributes)) if first.attributes else ()
        if not is_all_absent or not others:
            continue
        targets_in_cache = index.targets()
        near = [other for other in others if group_of("", other.digest).target in targets_in_cache]
        if near:
            counts = " and ".join(each.there for each in near)
            yield (
                f"cache: nothing for {target}, as its records are of runners of another size: "
                f"{near[0].name} {counts} there, {near[0].here} here. Give each size its own "
                f"label, or set targets[].{_KEYS[near[0].name]}"
            )


_KEYS = {"threads": "threads", "architecture": "arch"}


def _with_claims(use: CacheUse, claim_count: int) -> CacheUse:
    if not claim_count:
        return use
    tasks = plural(claim_count, "task")
    note = (
        f"cache: zone {use.zone}, which is not trusted, has schedules of its own for {tasks}: "
        "measured in this run before they count"
    )
    return msgspec.structs.replace(use, claimed=claim_count, notes=(*use.notes, note))


def _without_unfinished(use: CacheUse, unfinished_count: int, resumed_count: int) -> CacheUse:
    """Returns the use of the cache without unfinished tasks among the exact hits. This run tunes
    `resumed_count` of them on."""
    tasks = plural(resumed_count, "task")
    note = f"cache: {tasks} that an earlier run did not finish: tuned on from what it has found"
    return msgspec.structs.replace(
        use,
        exact=use.exact - unfinished_count,
        transfer=use.transfer + unfinished_count,
        notes=(*use.notes, note) if resumed_count else use.notes,
    )


def _with_answer(task: PlannedTask, lookup: Lookup | None) -> PlannedTask:
    if not task.trials or not isinstance(lookup, ExactHit):
        return task
    start = resume_point(task.resolved.task.key, lookup)
    resolved_task = msgspec.structs.replace(task.resolved, lookup=start)
    return msgspec.structs.replace(task, resolved=resolved_task)


# The least time that any hardware needs for a task. A record that claims less is false.

PEAK: dict[Literal["llvm", "cuda"], float] = {"llvm": 1e15, "cuda": 2e16}
"""Operations per second, in any type, that no single socket or GPU reaches. The bound is generous:
a record's word for its device does not count, and no honest time may be dropped."""
_SLACK = 0.5
"""The flop count of a function is an estimate."""


def fastest_nanoseconds(task: TuningTask, kind: Literal["llvm", "cuda"]) -> int:
    """Returns the shortest possible time of one call, 0 if the operations are unknown. Only the
    compute side of the roofline: data in caches moves faster than any memory."""
    return int(_SLACK * task.flops / PEAK[kind] * 1e9)
