"""Outcomes of several shards and attempts, made one set: in any order, and any number of times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome


def merge_outcomes(outcomes: Iterable[TuningOutcome]) -> tuple[TuningOutcome, ...]:
    """Returns one outcome per shard. Where a shard was tuned again after a kill, the longest
    attempt speaks for the shard and each task has the best of all attempts.

    Attempts are not summed: the same outcome twice must change nothing.
    """
    by_shard: dict[tuple[int, str], list[TuningOutcome]] = {}
    for outcome in outcomes:
        by_shard.setdefault((outcome.shard, outcome.target), []).append(outcome)
    return tuple(_one_shard(attempts) for _, attempts in sorted(by_shard.items()))


def _one_shard(attempts: Sequence[TuningOutcome]) -> TuningOutcome:
    longest = max(attempts, key=_attempt_order)
    by_task: dict[tuple[str, str], list[TaskOutcome]] = {}
    for attempt in attempts:
        for task in attempt.tasks:
            by_task.setdefault((task.key.workload, task.key.target), []).append(task)
    tasks = tuple(_one_task(same) for _, same in sorted(by_task.items()))
    return msgspec.structs.replace(longest, tasks=tasks)


def _one_task(attempts: Sequence[TaskOutcome]) -> TaskOutcome:
    best = min(attempts, key=_order)
    distinct = {msgspec.json.encode(r): r for attempt in attempts for r in attempt.records}
    ranked = sorted(distinct.items(), key=lambda item: (item[1].shrunk_ms, item[0]))
    return msgspec.structs.replace(best, records=tuple(record for _, record in ranked))


def _attempt_order(outcome: TuningOutcome) -> tuple[float, bytes]:
    return (outcome.spent.seconds, _encoded(msgspec.structs.replace(outcome, tasks=())))


def _order(task: TaskOutcome) -> tuple[float, int, bytes]:
    """Fastest first, then the most tried; the bytes decide what is left, whatever the order.

    Records are left out: they grow by merging, and a merged outcome must rank as before.
    """
    best_ms = float("inf") if task.best_ms is None else task.best_ms
    return (best_ms, -task.trials, _encoded(msgspec.structs.replace(task, records=())))


def _encoded(struct: msgspec.Struct) -> bytes:
    return msgspec.json.encode(struct, order="deterministic")
