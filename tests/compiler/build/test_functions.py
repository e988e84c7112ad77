from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.support.small_onnx import conv_model, save
from tunegate.compiler.build.functions import layer_names


def names_of(model: onnx.ModelProto, tmp_path: Path) -> list[str]:
    return list(layer_names(save(model, tmp_path / "m.onnx")).values())


def named(model: onnx.ModelProto, *names: str) -> onnx.ModelProto:
    for node, name in zip(model.graph.node, names, strict=False):
        node.name = name
    return model


def test_a_weight_names_the_first_layer_that_uses_it(tmp_path: Path) -> None:
    assert set(names_of(named(conv_model(), "stem"), tmp_path)) == {"stem"}


def test_a_layer_without_a_name_is_called_like_what_it_gives(tmp_path: Path) -> None:
    model = named(conv_model(), "")
    assert set(names_of(model, tmp_path)) == {model.graph.node[0].output[0]}


def test_two_layers_with_one_weight_are_named_by_the_first(tmp_path: Path) -> None:
    floats = TensorProto.FLOAT
    weight = numpy_helper.from_array(np.ones((4, 4), "float32"), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], name="first"),
        helper.make_node("MatMul", ["y", "w"], ["z"], name="second"),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [info("x", floats, [4, 4])], [info("z", floats, [4, 4])], [weight]
    )
    assert names_of(helper.make_model(graph), tmp_path) == ["first"]
