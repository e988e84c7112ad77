from __future__ import annotations

import numpy as np
import onnx

from tests.support.graphs import GraphInput, graph_of, node
from tunegate.models.inputs.dataflow import Dataflow

X = GraphInput("x", (2, 3), "float32")


def test_names_of_one_branch_are_not_those_of_the_other() -> None:
    def branch(op: str) -> onnx.GraphProto:
        nodes = [node(op, "x", "inner"), node("Relu", "inner", "out")]
        return onnx.helper.make_graph(nodes, "b", [], [onnx.ValueInfoProto(name="out")])

    flag = GraphInput("flag", (), "bool")
    choice = node(
        "If", "flag", "y", name="if", then_branch=branch("Neg"), else_branch=branch("Abs")
    )
    flow = Dataflow(graph_of([choice], [flag, X]), [flag, X])
    assert sorted(use.step.op for use in flow.uses("x")) == ["Abs", "Neg"]
    assert [use.step.op for use in flow.uses("if/0/inner")] == ["Relu"]


def test_dimensions_are_those_of_the_inputs_and_what_follows_from_them() -> None:
    model = graph_of([node("Transpose", "x", "t"), node("Relu", "t", "y")], [X])
    flow = Dataflow(model, [X._replace(shape=(5, 7))])
    assert flow.shape("t") == (7, 5)
    assert flow.dimension("t", -1) == 5
    assert flow.dimension("t", 2) is None


def test_a_constant_is_computed_from_shapes() -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "rows"),
        node("Range", "zero rows one", "places"),
        node("Cast", "places", "y", to=1),
    ]
    weights = {"zero": np.int64(0), "one": np.int64(1)}
    flow = Dataflow(graph_of(nodes, [X], weights=weights), [X])
    assert flow.constant("places").tolist() == [0, 1]
    assert flow.constant("x") is None


def test_steps_that_no_output_needs_are_left_out() -> None:
    flow = Dataflow(graph_of([node("Neg", "x", "z"), node("Relu", "x", "y")], [X]), [X])
    assert [use.step.op for use in flow.uses("x")] == ["Relu"]
