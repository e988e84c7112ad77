"""A kernel is called like the nodes that it computes, whatever the compiler calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.small_onnx import conv_model, save
from tunegate.compiler.build.functions import functions_of, kernel_nodes, with_kernel_nodes
from tunegate.compiler.importing.import_onnx import fused, import_operators
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.models.preparation import prepare

TARGET = tvm_target(TargetConfig(name="cpu", threads=1)).target


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A product, then operators without weights, one of them without a name."""
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "encoder/proj"),
        helper.make_node("Softmax", ["a"], ["b"], "encoder/attention", axis=-1),
        helper.make_node("Exp", ["b"], ["c"], "encoder/exp"),
        helper.make_node("Sqrt", ["c"], ["d"], "encoder/root"),
        helper.make_node("ReduceMax", ["d"], ["y"], axes=[1]),
    ]
    weights = numpy_helper.from_array(np.ones((16, 16), "f"), "w")
    shape = [info("x", TensorProto.FLOAT, [4, 16])], [info("y", TensorProto.FLOAT, [4, 1])]
    graph = helper.make_graph(nodes, "g", *shape, [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    folder: Path = tmp_path_factory.mktemp("named")
    prepared = prepare(save(model, folder / "m.onnx"), shapes={}, into=folder / "p", path="m")
    return fused(import_operators(prepared, "m"), TARGET, channels_last=True)


def test_a_kernel_without_weights_is_called_like_its_first_and_last_node(module: Any) -> None:
    labels = [each.label for each in functions_of(module)]
    assert labels == ["encoder/proj", "encoder/attention to root", "ReduceMax y"]


def test_a_change_of_layout_keeps_its_operator(tmp_path: Path) -> None:
    prepared = prepare(
        save(conv_model(), tmp_path / "m.onnx"), shapes={}, into=tmp_path / "p", path="m"
    )
    found = fused(import_operators(prepared, "m"), TARGET, channels_last=True)
    labels = [each.label for each in functions_of(found)]
    assert labels == ["transpose", "conv", "transpose (conv_relu)"]


def test_all_nodes_of_a_fused_kernel_are_known_in_their_order(module: Any) -> None:
    assert ["encoder/attention", "encoder/exp", "encoder/root"] in kernel_nodes(module).values()


def test_names_are_no_part_of_what_a_kernel_computes(module: Any) -> None:
    plain = with_kernel_nodes(module, [])
    assert kernel_nodes(plain) == {}
    found, known = functions_of(plain), functions_of(module)
    assert [each.workload.digest for each in found] == [each.workload.digest for each in known]
    assert [each.label for each in found] == [each.operator for each in found]
