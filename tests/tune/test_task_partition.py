from __future__ import annotations

import msgspec

from tests.support.plans import plan_of
from tests.support.tuning_tasks import (
    DEVICE,
    exact,
    key_of,
    make_outcome,
    make_record,
    make_task,
    transfer,
)
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import Cost, TuningPlan
from tunegate.artifacts.tasks import Skipped
from tunegate.tune.outcomes import TaskOnTarget, TaskPartition, partition_of, tally
from tunegate_cache.format.records import Lookup, Miss, TransferHit

NAMES = ("known", "tuned", "begun", "resumed", "failed", "left", "waiting", "small")
RESUMED = TransferHit((key_of("resumed"),), 0.0, (make_record("resumed", times=3),))
LOOKUPS: dict[str, Lookup] = {"known": exact("known"), "begun": transfer(), "resumed": RESUMED}
TASKS = (
    make_outcome("tuned", records=(make_record("tuned"),)),
    make_outcome("begun", records=(make_record("begun", times=3),), stopped="budget"),
    make_outcome("failed", stopped="failed"),
    make_outcome("left", trials=0, stopped="not-started"),
    make_outcome("small", trials=0, records=(make_record("small"),)),
)
OUTCOME = TuningOutcome(
    shard=0, target="cpu", tasks=TASKS, spent=Cost(seconds=1.0), device=DEVICE, stopped="seconds"
)


def planned() -> TuningPlan:
    made = plan_of(
        [make_task(name) for name in NAMES],
        [LOOKUPS.get(name, Miss("absent")) for name in NAMES],
    )
    skipped: dict[str, Skipped] = {"waiting": "shared"}
    tasks = tuple(
        msgspec.structs.replace(each, skipped=skipped.get(name, ""))
        for name, each in zip(NAMES, made.resolution.tasks, strict=True)
    )
    return msgspec.structs.replace(
        made, resolution=msgspec.structs.replace(made.resolution, tasks=tasks)
    )


def part(*names: str) -> frozenset[TaskOnTarget]:
    return frozenset((key_of(name), "cpu") for name in names)


def test_every_task_is_in_one_part() -> None:
    assert partition_of(planned().resolution.tasks, [OUTCOME]) == TaskPartition(
        before=part("known"),
        now=part("tuned"),
        measured=part("small"),
        begun=part("begun", "resumed"),
        waiting=part("waiting"),
        untuned=part("failed", "left"),
    )


def test_the_summary_of_tuning_counts_these_parts() -> None:
    told = tally(planned(), [OUTCOME])
    counted = (told.tasks, told.exact, told.tuned, told.measured, told.begun, told.waiting)
    assert counted == (8, 1, 1, 1, 2, 1)
