from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tests.support.tuning_tasks import (
    CHANGES,
    key_of,
    make_record,
    make_resolution,
    make_task,
)
from tunegate.artifacts.builds import Build, BuiltTask
from tunegate.artifacts.changes import Side
from tunegate.artifacts.cost import Cost
from tunegate.artifacts.plans import Budget, TuningPlan
from tunegate.artifacts.schedule_source import ScheduleSource
from tunegate.config import TargetConfig
from tunegate.ports import BuildJob, ModelJob
from tunegate.sides.shared_schedules import as_in_base, decided_by_base

BOTH: tuple[Side, Side] = ("base", "head")
A, B = key_of("a"), key_of("b")


def plan_of(**tasks: Sequence[Side]) -> TuningPlan:
    made = [make_task(name, sides=sides) for name, sides in tasks.items()]
    return TuningPlan(
        changes=CHANGES,
        resolution=make_resolution(made),
        shards=(),
        budget=Budget(seconds=None, trials=None),
        estimate=Cost(seconds=0.0),
    )


@pytest.mark.parametrize(
    ("source", "is_decided"),
    [("transfer", True), ("claimed", True), ("prior", True), ("exact", False), ("search", False)],
)
def test_the_base_decides_about_what_nobody_has_measured(
    source: ScheduleSource, is_decided: bool
) -> None:
    decided = decided_by_base(plan_of(a=BOTH), {A: source})
    assert decided == ({"m.onnx": frozenset({A})} if is_decided else {})


def test_what_one_side_alone_has_is_its_own_affair() -> None:
    assert decided_by_base(plan_of(a=("head",), b=("base",)), {A: "transfer", B: "transfer"}) == {}


JOB = BuildJob(
    model=ModelJob(file=Path("m"), path="m.onnx", shapes={}, target=TargetConfig(name="cpu")),
    records={A: [make_record("a")], B: [make_record("b")]},
    sources={A: "transfer", B: "transfer"},
    directory=Path("d"),
)


def built(*rids: str, error: str | None = None) -> Build:
    tasks = tuple(
        BuiltTask(key=key, name="conv", weight=1, source="transfer", rid=rid, ms=None)
        for key, rid in zip((A, B), rids, strict=True)
    )
    return Build(
        key="k", directory="", tasks=tasks, check=None, error=error, size_bytes=0, seconds=0.0
    )


def test_the_head_has_what_the_base_kept_and_drops_what_it_dropped() -> None:
    job = as_in_base(JOB, built("kept", ""), {A, B})
    assert (list(job.records[A]), list(job.records[B])) == ([make_record("a")], [])
    assert job.settled == {A, B}
    assert job.sources == {A: "transfer"}


def test_tasks_of_the_head_alone_are_still_tried_in_it() -> None:
    job = as_in_base(JOB, built("kept", ""), {A})
    assert list(job.records[B]) == [make_record("b")]
    assert job.settled == {A}


def test_a_base_that_could_not_be_built_decides_nothing() -> None:
    refused = msgspec.structs.replace(built("", ""), error="no")
    assert as_in_base(JOB, refused, {A, B}) is JOB
