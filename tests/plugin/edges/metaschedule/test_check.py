from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.small_onnx import save
from tunegate.config import TargetConfig
from tunegate.edges.metaschedule.compiler import MetaScheduleCompiler
from tunegate.ports import BuildJob, ModelJob


def two_outputs() -> onnx.ModelProto:
    shape = [2, 8]
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Sigmoid", ["x"], ["y"]), helper.make_node("Exp", ["x"], ["z"])]
    graph = helper.make_graph(
        nodes,
        "two",
        [value("x", TensorProto.FLOAT, shape)],
        [value("y", TensorProto.FLOAT, shape), value("z", TensorProto.FLOAT, shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_every_output_has_errors_of_its_own_and_the_worst_are_the_builds(tmp_path: Path) -> None:
    target = TargetConfig(name="cpu", threads=1)
    model = ModelJob(
        file=save(two_outputs(), tmp_path / "m.onnx"), path="m.onnx", shapes={}, target=target
    )
    compiler = MetaScheduleCompiler(tmp_path / "c")
    job = BuildJob(model=model, records={}, sources={}, directory=tmp_path / "b")
    (build,) = compiler.build([job])
    compiler.close()
    assert build.check is not None
    assert build.check.passed
    assert [output.name for output in build.check.outputs] == ["y", "z"]
    worst = max(output.max_relative for output in build.check.outputs)
    assert build.check.max_relative == pytest.approx(worst)
    assert 0 <= worst <= build.check.tolerance
