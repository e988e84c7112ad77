"""What is known of tensors before a model runs: shapes that depend on data, scalars, no numbers."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from tunegate.models.reference.value_types import ValueType, value_types


def model(nodes: list[onnx.NodeProto], outputs: list[str]) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_shapes_follow_from_the_graph_where_they_can() -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["turned"]),
        helper.make_node("NonZero", ["turned"], ["places"]),
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node(
            "Scaler", ["x"], ["scaled"], domain="ai.onnx.ml", offset=[0.0], scale=[1.0]
        ),
    ]
    found = value_types(model(nodes, ["places", "sum", "scaled"]))
    assert found["x"] == ValueType("float32", (2, 3))
    assert found["turned"] == ValueType("float32", (3, 2))
    assert found["places"] == ValueType("int64", None)
    assert found["sum"] == ValueType("float32", ())
    assert found["scaled"] == ValueType("float32", None)
    assert [name for name, each in found.items() if each.is_static] == ["x", "sum", "turned"]


def test_texts_are_no_numbers() -> None:
    nodes = [helper.make_node("Cast", ["x"], ["text"], to=TensorProto.STRING)]
    found = value_types(model(nodes, ["text"]))
    assert found["text"] == ValueType("", (2, 3))
    assert not found["text"].is_static
