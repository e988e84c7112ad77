from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tests.support.measured_cells import make_version
from tests.support.tuning_tasks import (
    CHANGES,
    key_of,
    make_record,
    make_resolution,
    make_task,
)
from tunegate.artifacts.builds import Build, BuiltTask
from tunegate.artifacts.changes import ModelChange, Side
from tunegate.artifacts.plans import Budget, Cost, TuningPlan
from tunegate.artifacts.tasks import ScheduleSource
from tunegate.config import TargetConfig
from tunegate.measure.build_records import DecidedByBase, as_in_base, decided_by_base
from tunegate.ports import BuildJob, ModelJob
from tunegate_cache.format.how_built import HowBuilt

BOTH: tuple[Side, Side] = ("base", "head")
A, B = key_of("a"), key_of("b")
CPU = TargetConfig(name="cpu")


def plan_of(**tasks: Sequence[Side]) -> TuningPlan:
    made = [make_task(name, sides=sides) for name, sides in tasks.items()]
    return TuningPlan(
        changes=CHANGES,
        resolution=make_resolution(made),
        shards=(),
        budget=Budget(seconds=None, trials=None),
        estimate=Cost(seconds=0.0),
    )


@pytest.mark.parametrize("source", ["transfer", "claimed", "prior", "exact", "search"])
def test_the_base_decides_about_every_schedule_that_both_sides_may_have(
    source: ScheduleSource,
) -> None:
    decided = decided_by_base(plan_of(a=BOTH, b=BOTH), {A: source}, [CPU])
    assert decided == {"m.onnx": DecidedByBase(frozenset({A}))}


@pytest.mark.parametrize(
    ("base", "head", "is_alike"), [("g", "g", True), ("g", "h", False), ("", "", False)]
)
def test_sides_of_one_graph_are_built_alike(base: str, head: str, is_alike: bool) -> None:
    change = ModelChange(
        path="m.onnx",
        kind="modified",
        change="weights-only",
        base=msgspec.structs.replace(make_version("base"), graph_digest=base),
        head=msgspec.structs.replace(make_version("head"), graph_digest=head),
        targets=("cpu",),
    )
    changes = msgspec.structs.replace(CHANGES, models=(change,))
    plan = msgspec.structs.replace(plan_of(a=BOTH), changes=changes)
    assert decided_by_base(plan, {A: "exact"}, [CPU])["m.onnx"].is_alike == is_alike


@pytest.mark.parametrize(("source", "is_decided"), [("exact", False), ("transfer", True)])
def test_on_a_gpu_nothing_waits_for_what_was_measured(
    source: ScheduleSource, is_decided: bool
) -> None:
    gpu = TargetConfig(name="cpu", kind="cuda", arch="sm_80")
    assert bool(decided_by_base(plan_of(a=BOTH), {A: source}, [gpu])["m.onnx"].keys) == is_decided


def test_what_one_side_alone_has_is_its_own_affair() -> None:
    assert (
        decided_by_base(plan_of(a=("head",), b=("base",)), {A: "transfer", B: "transfer"}, [CPU])
        == {}
    )


JOB = BuildJob(
    model=ModelJob(file=Path("m"), path="m.onnx", shapes={}, target=TargetConfig(name="cpu")),
    records={A: [make_record("a")], B: [make_record("b")]},
    sources={A: "transfer", B: "transfer"},
    directory=Path("d"),
)


BOTH_TASKS = DecidedByBase(frozenset({A, B}))


def built(*rids: str, error: str | None = None) -> Build:
    tasks = tuple(
        BuiltTask(key=key, name="conv", weight=1, source="transfer", rid=rid, ms=None)
        for key, rid in zip((A, B), rids, strict=True)
    )
    return Build(
        key="k", directory="", tasks=tasks, check=None, error=error, size_bytes=0, seconds=0.0
    )


def test_the_head_has_what_the_base_kept_and_drops_what_it_dropped() -> None:
    job = as_in_base(JOB, JOB, built("kept", ""), BOTH_TASKS)
    assert (list(job.records[A]), list(job.records[B])) == ([make_record("a")], [])
    assert job.settled == {A, B}
    assert job.sources == {A: "transfer"}


def test_tasks_of_the_head_alone_are_still_tried_in_it() -> None:
    job = as_in_base(JOB, JOB, built("kept", ""), DecidedByBase(frozenset({A})))
    assert list(job.records[B]) == [make_record("b")]
    assert job.settled == {A}


def test_a_base_that_could_not_be_built_decides_nothing() -> None:
    refused = msgspec.structs.replace(built("", ""), error="no")
    assert as_in_base(JOB, JOB, refused, BOTH_TASKS) is JOB


def test_tasks_that_no_part_of_the_base_has_are_still_tried() -> None:
    base = built("kept", "")
    base = msgspec.structs.replace(base, tasks=base.tasks[:1])
    job = as_in_base(JOB, JOB, base, BOTH_TASKS)
    assert list(job.records[B]) == [make_record("b")]
    assert job.settled == {A}


def test_what_a_form_chooses_by_times_is_the_choice_of_the_base() -> None:
    base = msgspec.structs.replace(built("kept", ""), how=HowBuilt(kept=(7,)))
    whole = msgspec.structs.replace(JOB, settings={"launch": "whole"})
    assert as_in_base(whole, whole, base, DecidedByBase(frozenset())).decided == (7,)
    assert as_in_base(JOB, JOB, base, DecidedByBase(frozenset())).decided == ()


def test_other_weights_follow_all_that_was_decided_of_the_base() -> None:
    how = HowBuilt(compiled=(1, 2))
    base = msgspec.structs.replace(built("kept", ""), how=how)
    alike = DecidedByBase(frozenset({A, B}), is_alike=True)
    assert as_in_base(JOB, JOB, base, alike) == msgspec.structs.replace(JOB, how=how)
    larger = msgspec.structs.replace(JOB.model, shapes={"x": (8,)})
    of_base = msgspec.structs.replace(JOB, model=larger)
    assert as_in_base(JOB, of_base, base, alike).how is None
