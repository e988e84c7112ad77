"""Schedules of a stock database on our own templates."""

import json
from pathlib import Path

import msgspec
import onnx.parser
import pytest
import tvm
from tests.compiler.importing.fused_module import fused_module
from tests.compiler.search.test_search import product
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx
from tvm.s_tir import meta_schedule as ms

from exchange_tests.stock_tvm import fill
from tunegate.artifacts.tasks import Instruction
from tunegate.compiler.build.functions import ModelFunction, functions_of
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.layouts.packing import unmark_constants
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import canonical_workload
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.tune.protocol import Schedule
from tunegate_exchange.conversion import import_schedules, stock_module
from tunegate_exchange.requests import ForeignSchedule, ImportedSchedule
from tunegate_exchange.stock_database import read_database

load_intrinsics("llvm")
GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_90")
TARGET = tvm_target(TargetConfig(name="cpu", kind="llvm"))

CODE: Instruction = ("Annotate", ["b0", '"int x;"'], ["pragma_import_c"], [])


def ours(rows: int = 64) -> ModelFunction:
    return ModelFunction(
        name="f",
        workload=canonical_workload(product(rows, 48, 80)),
        weight=1,
        label="f",
        operator="matmul",
        dtype="float32",
        flops=1.0,
        bytes_moved=0.0,
    )


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> list[ForeignSchedule]:
    """The schedules that plain TVM writes of the same function under other names."""
    directory = tmp_path_factory.mktemp("stock")
    module = product(64, 48, 80, name="theirs")
    database = ms.database.JSONDatabase(work_dir=str(directory))
    fill(database, tvm.IRModule({"main": module}), TARGET.target)
    return list(read_database(directory).schedules)


def imported(foreign: list[ForeignSchedule], *functions: ModelFunction) -> list[ImportedSchedule]:
    return list(import_schedules(functions or [ours()], foreign, TARGET))


def test_schedules_of_the_same_function_under_other_names_fit(
    foreign: list[ForeignSchedule],
) -> None:
    found = imported(foreign)
    assert len(found) == 4
    space = DesignSpace(ours().workload, TARGET.target)
    for schedule in found:
        replayed = space.replay(Schedule(schedule.template, schedule.decisions))
        assert replayed is not None
        assert schedule.key.workload == ours().workload.digest


def test_a_function_of_another_shape_imports_nothing(foreign: list[ForeignSchedule]) -> None:
    assert imported(foreign, ours(rows=32)) == []


def test_tiles_that_do_not_multiply_to_the_extent_are_refused(
    foreign: list[ForeignSchedule],
) -> None:
    broken = [
        msgspec.structs.replace(
            schedule,
            decisions=tuple((i, (7, *v[1:]) if len(v) > 1 else v) for i, v in schedule.decisions),
        )
        for schedule in foreign
    ]
    assert imported(broken) == []


def test_an_instruction_more_is_refused(foreign: list[ForeignSchedule]) -> None:
    more = [
        msgspec.structs.replace(s, instructions=(*s.instructions[:4], CODE, *s.instructions[4:]))
        for s in foreign
    ]
    assert imported(more) == []


def test_the_instructions_of_postprocessing_are_never_looked_at(
    foreign: list[ForeignSchedule],
) -> None:
    longer = [msgspec.structs.replace(s, instructions=(*s.instructions, CODE)) for s in foreign]
    assert imported(longer) == imported(foreign)
    assert "pragma" not in json.dumps(msgspec.to_builtins(imported(longer)))


@pytest.mark.parametrize("kind", ["llvm", "cuda"])
def test_a_maximum_is_exported_as_plain_tvm_has_it(kind: str, tmp_path: Path) -> None:
    """For a CPU ours has the constant first."""
    target = TARGET if kind == "llvm" else tvm_target(GPU)
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 17]> m (float[8,8] x, float[8,8] y) => (float[8,8] z)'
        "{ a = MatMul(x, y) z = Relu(a) }"
    )
    (ours,) = functions_of(fused_module(model, tmp_path, target.target))
    with target.target:
        (theirs,) = functions_of(relax.get_pipeline("zero")(from_onnx(model)))
    exported = stock_module(unmark_constants(ours.workload).module)["main"]
    assert canonical_workload(exported).digest == theirs.workload.digest
