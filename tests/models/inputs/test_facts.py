from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest

from tests.support.graphs import GraphInput, graph_of, node
from tunegate.models.inputs import trace
from tunegate.models.inputs.constants import evaluate_node, tensor_values
from tunegate.models.inputs.dataflow import Dataflow
from tunegate.models.inputs.facts import Fact, facts_of
from tunegate.models.inputs.trace import Selected, Trace, meetings_of

I = GraphInput("i", (3, 2), "int64")
X = GraphInput("x", (5, 7), "float32")


def _facts(made: Any, tensor: GraphInput = I, weights: dict[str, Any] | None = None) -> list[Fact]:
    model = graph_of([made], [tensor, X], weights=weights or {})
    return list(facts_of(tensor, Dataflow(model, [tensor, X])))


@pytest.mark.parametrize(
    ("made", "high"),
    [
        (node("Gather", "x i", "y", axis=1), 6),
        (node("GatherElements", "x i", "y", axis=0), 4),
        (node("GatherND", "x i", "y"), 4),
        (node("ScatterElements", "x i u", "y", axis=-1), 6),
        (node("ScatterND", "x i v", "y"), 4),
    ],
)
def test_indices_are_within_the_axis_that_they_are_of(made: Any, high: int) -> None:
    weights = {"u": np.ones((3, 2), np.float32), "v": np.ones(3, np.float32)}
    (fact,) = _facts(made, weights=weights)
    assert (fact.low, fact.high, fact.is_must) == (0, high, True)


def test_classes_are_fewer_than_the_depth_of_their_coding() -> None:
    weights = {"depth": np.array([9]), "values": np.array([0.0, 1.0])}
    (fact,) = _facts(node("OneHot", "i depth values", "y"), weights=weights)
    assert (fact.low, fact.high, fact.is_must) == (0, 8, False)


def test_a_single_number_is_the_one_that_it_is_compared_with() -> None:
    rate = GraphInput("i", (1,), "int64")
    (fact,) = _facts(node("Equal", "i rate", "y"), rate, {"rate": np.int64(8000)})
    assert fact.values == (8000,)


def test_lengths_compared_with_all_places_are_whole() -> None:
    (fact,) = _facts(node("Less", "places i", "y"), weights={"places": np.arange(2)})
    assert fact.values == (2,)


@pytest.mark.parametrize(
    ("made", "arrays", "expected"),
    [
        (node("Shape", "x", "y", start=1), [(2, 3, 4)], [3, 4]),
        (node("Unsqueeze", "x axes", "y"), [np.arange(2), np.array([0])], [[0, 1]]),
        (node("Unsqueeze", "x", "y", axes=[1]), [np.arange(2)], [[0], [1]]),
        (node("Range", "a b c", "y"), [np.int64(0), np.int64(3), np.int64(1)], [0, 1, 2]),
        (node("Slice", "x a b", "y"), [np.arange(5), np.array([1]), np.array([-1])], [1, 2, 3]),
        (node("Slice", "x", "y", starts=[3], ends=[9]), [np.arange(5)], [3, 4]),
        (node("Div", "a b", "y"), [np.array([7]), np.array([2])], [3]),
        (node("Cast", "x", "y", to=7), [np.array([1.9])], [1]),
    ],
)
def test_simple_operators_are_computed(made: onnx.NodeProto, arrays: Any, expected: Any) -> None:
    assert evaluate_node(made, arrays, 100).tolist() == expected


def test_nothing_is_known_of_what_does_not_fit_together() -> None:
    assert evaluate_node(node("Reshape", "x s", "y"), [np.arange(3), np.array([2])], 100) is None
    assert evaluate_node(node("Shape", "x", "y"), [(2, None)], 100) is None
    assert evaluate_node(node("Relu", "x", "y"), [np.arange(3)], 100) is None


def test_a_long_range_is_not_made() -> None:
    huge = [np.int64(0), np.int64(2**60), np.int64(1)]
    assert evaluate_node(node("Range", "a b c", "y"), huge, 100) is None


def test_a_large_tensor_and_one_outside_of_the_file_are_unknown() -> None:
    assert tensor_values(onnx.numpy_helper.from_array(np.arange(200), "t"), 100) is None
    outside = onnx.TensorProto(dims=[2], data_type=7, data_location=onnx.TensorProto.EXTERNAL)
    assert tensor_values(outside, 100) is None


DATAFLOW_X = GraphInput("x", (2, 3), "float32")


def test_names_of_one_branch_are_not_those_of_the_other() -> None:
    def branch(op: str) -> onnx.GraphProto:
        nodes = [node(op, "x", "inner"), node("Relu", "inner", "out")]
        return onnx.helper.make_graph(nodes, "b", [], [onnx.ValueInfoProto(name="out")])

    flag = GraphInput("flag", (), "bool")
    choice = node(
        "If", "flag", "y", name="if", then_branch=branch("Neg"), else_branch=branch("Abs")
    )
    flow = Dataflow(graph_of([choice], [flag, DATAFLOW_X]), [flag, DATAFLOW_X])
    assert sorted(use.step.op for use in flow.uses("x")) == ["Abs", "Neg"]
    assert [use.step.op for use in flow.uses("if/0/inner")] == ["Relu"]


def test_dimensions_are_those_of_the_inputs_and_what_follows_from_them() -> None:
    model = graph_of([node("Transpose", "x", "t"), node("Relu", "t", "y")], [DATAFLOW_X])
    flow = Dataflow(model, [DATAFLOW_X._replace(shape=(5, 7))])
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
    flow = Dataflow(graph_of(nodes, [DATAFLOW_X], weights=weights), [DATAFLOW_X])
    assert flow.constant("places").tolist() == [0, 1]
    assert flow.constant("x") is None


TRACE_X = GraphInput("x", (4, 6), "int64")


def _last(nodes: list[onnx.NodeProto], weights: Mapping[str, Any]) -> Trace:
    """The trace that the last step reads."""
    model = graph_of([*nodes, node("Neg", "end", "y")], [TRACE_X], weights=weights)
    meetings = list(meetings_of(TRACE_X, Dataflow(model, [TRACE_X])))
    return next(each.trace for each in meetings if each.use.step.op == "Neg")


def test_a_slice_selects_columns() -> None:
    weights = {"from": np.array([1]), "to": np.array([3]), "axis": np.array([1])}
    assert _last([node("Slice", "x from to axis", "end")], weights).columns == Selected(1, (1, 2))


def test_after_a_reshape_no_columns_are_told_apart() -> None:
    weights = {"shape": np.array([-1]), "a": np.array([1])}
    nodes = [node("Reshape", "x shape", "flat"), node("Gather", "flat a", "end")]
    assert _last(nodes, weights).columns is None


def test_a_part_of_a_concatenation_has_its_place() -> None:
    weights = {"first": np.zeros((4, 2), np.int64)}
    assert _last([node("Concat", "first x", "end", axis=-1)], weights).component == 2


def test_a_chain_that_all_inputs_lead_to_is_followed_for_the_first_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thousands of inputs and thousands of steps are millions of meetings."""
    monkeypatch.setattr(trace, "_MAX_FOLLOWED_OF_ALL", 6)
    inputs = [GraphInput(name, (1, 2), "int64") for name in "abc"]
    nodes = [node("Concat", "a b c", "d", axis=1), node("Neg", "d", "y")]
    flow = Dataflow(graph_of(nodes, inputs), inputs)
    assert [len(list(meetings_of(each, flow))) for each in inputs] == [2, 2, 2]
    assert list(meetings_of(inputs[0], flow)) == []


def test_a_part_of_a_long_concatenation_begins_where_the_parts_before_it_end() -> None:
    parts = [f"p{number}" for number in range(300)]
    nodes = [
        node("Split", "x", " ".join(parts), axis=1),
        node("Concat", " ".join(parts), "end", axis=1),
    ]
    wide = GraphInput("x", (1, 300), "int64")
    flow = CountingDataflow(graph_of([*nodes, node("Neg", "end", "y")], [wide]), [wide])
    begins = [each.trace.component for each in meetings_of(wide, flow) if each.use.step.op == "Neg"]
    assert begins == list(range(300))
    assert flow.asked < 1000


class CountingDataflow(Dataflow):
    asked = 0

    def dimension(self, name: str, axis: int) -> int | None:
        self.asked += 1
        return super().dimension(name, axis)
