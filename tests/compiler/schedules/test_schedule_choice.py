"""The schedule of each kernel of a build."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.support.small_onnx import matmul_model, save
from tests.support.tuning_records import make_key, make_record
from tunegate.compiler.build.functions import ModelFunction, functions_of
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.opening import import_in_layout
from tunegate.compiler.schedules.schedule_choice import (
    ScheduleChoice,
    as_before,
    chosen_schedule,
    record_id,
    without_schedules,
)
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.models.preparation import prepare
from tunegate_cache.format.how_built import HowBuilt, mark_of
from tunegate_cache.format.records import WorkloadKey

load_intrinsics("llvm")
TARGET = tvm_target(TargetConfig(name="cpu", threads=1))


def product(directory: Path) -> ModelFunction:
    file = save(matmul_model(), directory / "m.onnx")
    prepared = prepare(file, shapes={}, into=directory / "p", path="m.onnx")
    (function,) = functions_of(import_in_layout(prepared, TARGET.target, "m.onnx", ("nchw",)))
    return function


def test_a_record_that_does_not_replay_leaves_the_default_schedule(tmp_path: Path) -> None:
    function = product(tmp_path)
    of_another = msgspec.structs.replace(make_record(), status="ok")
    for records in ((), (of_another,)):
        choice = chosen_schedule(function, {function.workload.digest: records}, TARGET)
        assert (choice.main, choice.record) == (None, None)


def test_where_nothing_was_measured_the_prior_picks(tmp_path: Path) -> None:
    choice = chosen_schedule(product(tmp_path), {}, TARGET, "prior")
    assert choice.main is not None
    assert (choice.record, choice.schedule) == (None, choice.picked)


def test_a_schedule_stays_where_an_earlier_build_had_the_same(tmp_path: Path) -> None:
    choice = chosen_schedule(product(tmp_path), {}, TARGET, "prior")
    assert choice.picked is not None
    key = WorkloadKey(choice.function.workload.digest, TARGET.key)
    mark = mark_of(record_id(key, choice.picked))
    assert as_before([choice], HowBuilt(kept=(mark,)), TARGET.key) == [choice]
    for other in ((), (mark + 1,)):
        (found,) = as_before([choice], HowBuilt(kept=other), TARGET.key)
        assert (found.main, found.schedule) == (None, None)


def test_a_neighbours_record_that_is_picked_counts_as_transferred(tmp_path: Path) -> None:
    """Each pick is offered as a neighbour's, until nothing better is found beside it."""
    function = product(tmp_path)
    choice = chosen_schedule(function, {}, TARGET, "prior")
    for _ in range(20):
        if choice.picked is None:
            break
        near = make_record(
            "another", template=choice.picked.template, decisions=choice.picked.decisions
        )
        records = {function.workload.digest: (near,)}
        choice = chosen_schedule(function, records, TARGET, "transfer")
    assert choice.record is not None
    assert choice.record.key == make_key("another")


def test_a_pick_that_computed_other_numbers_before_is_not_picked_again(tmp_path: Path) -> None:
    function = product(tmp_path)
    pick = chosen_schedule(function, {}, TARGET, "prior").picked
    assert pick is not None
    wrong = make_record(status="wrong", template=pick.template, decisions=pick.decisions)
    records = {function.workload.digest: (wrong,)}
    assert chosen_schedule(function, records, TARGET, "prior").picked not in {None, pick}


def test_kernels_without_their_schedule_have_the_default_one(tmp_path: Path) -> None:
    one = product(tmp_path)
    other = msgspec.structs.replace(one, name="other")
    chosen = [ScheduleChoice(each, object(), make_record()) for each in (one, other)]
    left = without_schedules(chosen, {"other"})
    assert left == [chosen[0], ScheduleChoice(other, None, None)]
