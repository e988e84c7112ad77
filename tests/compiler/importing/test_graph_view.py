"""What rules know of a graph."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tests.support.operator_models import operator_model
from tests.support.small_onnx import matmul_model
from tunegate.compiler.importing.graph_view import GraphView, attribute


def test_types_are_known_where_all_extents_are() -> None:
    view = GraphView(matmul_model(rows=3))
    assert view.type_of("y") == ((3, 16), TensorProto.FLOAT)
    assert view.type_of("w") == ((16, 16), TensorProto.FLOAT)
    assert view.type_of("nowhere") is None
    assert GraphView(matmul_model(rows="n")).type_of("y") is None


def test_constants_are_initializers_and_constant_nodes() -> None:
    model = operator_model(helper.make_node("Constant", [], ["y"], value_ints=[1, 2]), {})
    constant = GraphView(model).constant("y")
    assert constant is not None
    assert constant.tolist() == [1, 2]
    assert GraphView(matmul_model()).constant("x") is None


def test_attributes_have_defaults_and_text_is_text() -> None:
    node = helper.make_node("LSTM", ["x"], ["y"], direction="reverse", activations=["Tanh"])
    assert attribute(node, "direction") == "reverse"
    assert attribute(node, "activations") == ["Tanh"]
    assert attribute(node, "clip", np.inf) == np.inf
