from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tunegate.models.graph import outline_of
from tunegate.review.detect import changed_layers

Facts = dict[str, dict[str, str]]


def convolution(kernel: int, activation: str = "Relu", name: str = "mix") -> Facts:
    """The layers of a convolution with that kernel, and what follows it."""
    weights = np.zeros((16, 3, kernel, kernel), np.float32)
    pads = [kernel // 2] * 4
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name, kernel_shape=[kernel] * 2, pads=pads),
        helper.make_node(activation, ["c"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 16, 8, 8])],
        [numpy_helper.from_array(weights, "w")],
    )
    return outline_of(helper.make_model(graph).SerializeToString()).layers


def told(before: Facts, after: Facts) -> list[tuple[str, str]]:
    return [(each.name, each.change) for each in changed_layers(before, after)]


def test_a_kernel_that_became_larger_is_told_with_shapes_and_attributes() -> None:
    assert told(convolution(1), convolution(5)) == [
        (
            "mix",
            "Conv: weights 16x3x1x1 → 16x3x5x5, kernel_shape 1,1 → 5,5, pads 0,0,0,0 → 2,2,2,2",
        )
    ]


def test_an_operator_in_place_of_another_is_told_by_the_name_of_its_output() -> None:
    assert told(convolution(1), convolution(1, "Erf")) == [("y", "Relu → Erf")]


def test_new_layers_and_those_that_are_gone_have_what_they_are() -> None:
    new, gone = told(convolution(1, name="old"), convolution(1, name="new"))
    facts = "Conv (weights 16x3x1x1, kernel_shape 1,1, pads 0,0,0,0)"
    assert (new, gone) == (("new", f"new: {facts}"), ("old", f"gone: {facts}"))


def test_the_same_graph_says_nothing_and_long_names_are_cut() -> None:
    assert told(convolution(1), convolution(1)) == []
    (first, *_) = told({}, {"n" * 5000: {"operator": "Conv", "a": "b" * 5000}})
    assert (len(first[0]), len(first[1])) == (120, 300)


def test_a_model_of_too_many_nodes_is_not_compared_layer_by_layer() -> None:
    graph = onnx.GraphProto(name="g")
    graph.node.extend([helper.make_node("Relu", ["x"], ["y"])] * 20_001)
    graph.output.extend([helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])])
    assert outline_of(helper.make_model(graph).SerializeToString()).layers == {}
