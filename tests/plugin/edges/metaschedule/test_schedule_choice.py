"""The schedule of each kernel of a build."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.support.small_onnx import matmul_model, save
from tests.support.tuning_records import make_record
from tunegate.config import TargetConfig
from tunegate.edges.metaschedule.functions import ModelFunction, functions_of
from tunegate.edges.metaschedule.import_in_layout import import_in_layout
from tunegate.edges.metaschedule.schedule_choice import (
    ScheduleChoice,
    chosen_schedule,
    without_schedules,
)
from tunegate.edges.metaschedule.targets import tvm_target
from tunegate.edges.models.preparation import prepare

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


def test_kernels_without_their_schedule_have_the_default_one(tmp_path: Path) -> None:
    one = product(tmp_path)
    other = msgspec.structs.replace(one, name="other")
    chosen = [ScheduleChoice(each, object(), make_record()) for each in (one, other)]
    left = without_schedules(chosen, {"other"})
    assert left == [chosen[0], ScheduleChoice(other, None, None)]
