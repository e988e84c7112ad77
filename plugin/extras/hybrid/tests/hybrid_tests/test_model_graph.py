"""A model that is cut computes the same, part after part; what a compiler may be asked about."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tunegate.models.reference.value_types import value_types
from tunegate_hybrid.model_graph import ModelGraph
from tunegate_hybrid.partition import partition

FLOAT = TensorProto.FLOAT


def model(
    nodes: list[onnx.NodeProto], output: str = "y", constants: dict[str, Any] | None = None
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", FLOAT, [1, 4, 8, 8])],
        [onnx.ValueInfoProto(name=output)],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def graph_of(proto: onnx.ModelProto) -> ModelGraph:
    return ModelGraph(proto, value_types(proto))


def outputs(proto: onnx.ModelProto, feed: dict[str, Any]) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    names = [value.name for value in session.get_outputs()]
    wanted = {value.name for value in session.get_inputs()}
    return dict(zip(names, session.run(names, {n: feed[n] for n in wanted}), strict=True))


WEIGHT = np.random.default_rng(0).standard_normal((6, 4, 3, 3)).astype(np.float32)
BRANCH = helper.make_graph(
    [helper.make_node("Neg", ["c"], ["turned"])], "b", [], [onnx.ValueInfoProto(name="turned")]
)
NODES = [
    helper.make_node("Conv", ["x", "w"], ["c"]),
    helper.make_node("ReduceSum", ["c"], ["s"], keepdims=0),
    helper.make_node("Greater", ["s", "zero"], ["is_large"]),
    helper.make_node("If", ["is_large"], ["i"], then_branch=BRANCH, else_branch=BRANCH),
    helper.make_node("MaxPool", ["i"], ["p", ""], kernel_shape=[2, 2]),
    helper.make_node("MatMul", ["p", "m"], ["y"]),
]
CONSTANTS = {"w": WEIGHT, "zero": np.float32(0), "m": np.ones((5, 7), np.float32)}


@pytest.mark.parametrize("compiled", [{0, 5}, {0, 1, 2, 4, 5}, {1, 2}, set()])
def test_parts_compute_what_the_model_does(compiled: set[int]) -> None:
    proto = model(NODES, constants=CONSTANTS)
    graph = graph_of(proto)
    known = {"x": np.random.default_rng(1).standard_normal((1, 4, 8, 8)).astype(np.float32)}
    expected = outputs(proto, known)
    for part in partition(graph.nodes, compiled, graph.outputs):
        cut = graph.cut(part)
        onnx.checker.check_model(cut)
        known |= outputs(cut, known)
    np.testing.assert_array_equal(known["y"], expected["y"])


def test_nodes_of_a_fixed_shape_and_without_a_graph_inside_may_be_compiled() -> None:
    proto = model(NODES, constants=CONSTANTS)
    assert graph_of(proto).of_static_shapes() == {0, 1, 2, 4, 5}


def test_what_reads_a_shape_that_depends_on_data_may_not() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("NonZero", ["r"], ["n"]),
        helper.make_node("Transpose", ["n"], ["y"]),
        helper.make_node("Binarizer", ["r"], ["b"], domain="ai.onnx.ml"),
    ]
    assert graph_of(model(nodes)).of_static_shapes() == {0}


def test_products_have_the_work_of_their_sums() -> None:
    graph = graph_of(model(NODES, constants=CONSTANTS))
    assert graph.nodes[0].work == 2 * (6 * 6 * 6) * (4 * 3 * 3)
    assert graph.nodes[2].work == 1


def test_nodes_are_of_a_kind_where_all_but_the_extents_is_alike() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Conv", ["x", "v"], ["d"]),
        helper.make_node("Conv", ["x", "v"], ["e"], pads=[1, 1, 1, 1]),
    ]
    graph = graph_of(model(nodes, "c", {"w": WEIGHT, "v": WEIGHT[:2]}))
    assert graph.kind_of(0) == graph.kind_of(1)
    assert graph.kind_of(0) != graph.kind_of(2)


def test_an_output_that_no_node_makes_is_an_error() -> None:
    with pytest.raises(ValueError, match="no node makes the output x"):
        graph_of(model([helper.make_node("Relu", ["x"], ["y"])], "x"))


def test_what_goes_into_a_part_is_numbers() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["text"], to=TensorProto.STRING),
        helper.make_node("Cast", ["text"], ["y"], to=FLOAT),
    ]
    graph = graph_of(model(nodes))
    with pytest.raises(ValueError, match="text is no tensor of numbers"):
        [graph.cut(part) for part in partition(graph.nodes, {1}, graph.outputs)]
