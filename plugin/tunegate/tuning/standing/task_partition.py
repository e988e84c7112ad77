"""The partition of a run's tasks: every one in one part, for all who count them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.tuning.claims import is_waiting
from tunegate.tuning.standing.answered import answers_next_run
from tunegate.tuning.unfinished import is_resumed
from tunegate_cache.format.records import ExactHit, WorkloadKey

TaskOnTarget = tuple[WorkloadKey, str]


class TaskPartition(msgspec.Struct, frozen=True, kw_only=True):
    """`before` were known before, `now` tuned by this run to their end; of `measured` this run
    timed the default schedule, and no trial paid; `begun` have trials of this run or an earlier one
    and no answer; `waiting` are left to `tunegate warm`; `untuned` are all others."""

    before: frozenset[TaskOnTarget]
    now: frozenset[TaskOnTarget]
    measured: frozenset[TaskOnTarget]
    begun: frozenset[TaskOnTarget]
    waiting: frozenset[TaskOnTarget]
    untuned: frozenset[TaskOnTarget]


def partition_of(
    resolved: Iterable[ResolvedTask], outcomes: Sequence[TuningOutcome]
) -> TaskPartition:
    """The parts after these outcomes; before any is there, what the cache had."""
    tasks = {(task.key, task.target): task for outcome in outcomes for task in outcome.tasks}
    parts: dict[str, set[TaskOnTarget]] = {each: set() for each in TaskPartition.__struct_fields__}
    for each in resolved:
        identity = (each.task.key, each.task.target)
        parts[next(_part(each, tasks.get(identity)))].add(identity)
    return TaskPartition(**{name: frozenset(found) for name, found in parts.items()})


def _part(resolved: ResolvedTask, outcome: TaskOutcome | None) -> Iterator[str]:
    """The first that holds."""
    if isinstance(resolved.lookup, ExactHit):
        yield "before"
    if outcome is not None and answers_next_run(outcome):
        yield "now" if outcome.trials else "measured"
    if is_waiting(resolved):
        yield "waiting"
    is_tried = outcome is not None and outcome.trials > 0 and outcome.stopped != "failed"
    if is_tried or is_resumed(resolved.task.key, resolved.lookup):
        yield "begun"
    yield "untuned"
