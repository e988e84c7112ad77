"""A model that is opened whole has its kernels; shapes that depend on data are refused."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.small_onnx import one_node_model, save
from tunegate.compiler.opening import OpenModel, open_model
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.errors import UnsupportedModelError
from tunegate.models.preparation import prepare


def opened(model: onnx.ModelProto, place: Path) -> OpenModel:
    prepared = prepare(save(model, place / "m.onnx"), shapes={}, into=place / "p", path="m.onnx")
    target = tvm_target(TargetConfig(name="cpu", threads=1)).target
    return open_model(prepared, target, "m.onnx", layouts=("nhwc", "nchw"))


def test_its_kernels_are_found(tmp_path: Path) -> None:
    (function,) = opened(one_node_model("Relu"), tmp_path).functions
    assert (function.operator, function.weight) == ("relu", 1)


def test_a_shape_that_depends_on_data_is_refused(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["n"]),
        helper.make_node("Cast", ["n"], ["y"], to=TensorProto.FLOAT),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, "found"])],
    )
    opsets = [helper.make_opsetid("", 17)]
    with pytest.raises(UnsupportedModelError):
        opened(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path)
