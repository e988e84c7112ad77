"""LSTM, GRU and RNN, unrolled, beside ONNX Runtime's own."""

from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.support.operator_models import operator_model, rewritten
from tunegate.compiler.importing.rewriting import importable
from tunegate.errors import UnsupportedModelError

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ACTIVATIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
STEPS, BATCH, INPUTS, HIDDEN = 3, 2, 4, 5


class Case(NamedTuple):
    operator: str = "LSTM"
    direction: str = "forward"
    lengths: tuple[int, int] | None = None
    has_bias: bool = False
    has_state: bool = False
    has_peepholes: bool = False
    options: tuple[tuple[str, Any], ...] = ()
    activation: str = ""


OPTIONS = st.lists(
    st.sampled_from([("clip", 0.4), ("input_forget", 1), ("linear_before_reset", 1)]), unique=True
)
CASES = st.builds(
    Case,
    operator=st.sampled_from(sorted(GATES)),
    direction=st.sampled_from(["forward", "reverse", "bidirectional"]),
    lengths=st.sampled_from([None, (3, 3), (3, 2), (2, 0)]),
    has_bias=st.booleans(),
    has_state=st.booleans(),
    has_peepholes=st.booleans(),
    options=OPTIONS.map(tuple),
    activation=st.sampled_from(["", "Relu", "Softsign", "LeakyRelu", "HardSigmoid"]),
)


@given(CASES)
@example(Case(lengths=(2, 0), has_state=True))
@example(Case(has_bias=True, has_peepholes=True, has_state=True, options=(("clip", 0.4),)))
@example(Case("GRU", "bidirectional", has_bias=True, options=(("linear_before_reset", 1),)))
@example(Case("GRU", "reverse", has_bias=True))
@example(Case("RNN", "bidirectional", activation="LeakyRelu"))
@settings(max_examples=25, deadline=None)
def test_unrolled_they_give_the_same_numbers(case: Case) -> None:
    node, feed, weights = made(case)
    operators = rewritten(operator_model(node, feed, weights), feed)
    assert case.operator not in operators


def test_one_that_is_too_long_says_how_long_it_is() -> None:
    for direction, steps, said in (("forward", 33, "are too many"), ("bidirectional", 17, "both")):
        node, feed, weights = made(Case(direction=direction))
        feed = {**feed, "x": np.zeros((steps, BATCH, INPUTS), np.float32)}
        with pytest.raises(UnsupportedModelError, match=rf"LSTM \(.*: its {steps} steps.*{said}"):
            importable(operator_model(node, feed, weights))


def test_several_that_are_too_long_together_are_refused_before_any_is_unrolled() -> None:
    """Each step is a third of a second of import, whoever's it is."""
    for steps, is_refused in ((16, False), (17, True)):
        node, feed, weights = made(Case("GRU"))
        feed = {**feed, "x": np.zeros((steps, BATCH, INPUTS), np.float32)}
        model = operator_model(node, {**feed, **weights})
        other = model.graph.node.add()
        other.CopyFrom(node)
        other.output[:] = [name and f"{name}_too" for name in node.output]
        if not is_refused:
            importable(model)
            continue
        with pytest.raises(UnsupportedModelError, match="17 steps, 34 with the model's others"):
            importable(model)


def body(nodes: list[onnx.NodeProto], inputs: str, outputs: str) -> onnx.GraphProto:
    """A step, with a weight of its own, and the outer value `o` within reach."""
    kinds: dict[str, tuple[int, list[int]]] = {
        "i": (TensorProto.INT64, []),
        **dict.fromkeys(("k_in", "k_out", "true", "odd"), (TensorProto.BOOL, [])),
    }
    given, made = (
        [
            helper.make_tensor_value_info(name, *kinds.get(name, (TensorProto.FLOAT, [3])))
            for name in names.split()
        ]
        for names in (inputs, outputs)
    )
    weight = helper.make_tensor("w", TensorProto.FLOAT, [3], [1, 2, 3])
    return helper.make_graph(nodes, "body", given, made, [weight])


STEP = [
    helper.make_node("Add", ["s", "e"], ["sum"]),
    helper.make_node("Mul", ["sum", "w"], ["s_out"]),
    helper.make_node("Sub", ["s_out", "o"], ["e_out"]),
]
TURNED = {
    "scan_input_axes": [1],
    "scan_input_directions": [1],
    "scan_output_axes": [-1],
    "scan_output_directions": [1],
}


@pytest.mark.parametrize("options", [{}, TURNED])
def test_a_scan_is_unrolled(options: dict[str, Any]) -> None:
    graph = body(STEP, "s e", "s_out e_out")
    node = helper.make_node(
        "Scan", ["s", "x"], ["last", "y"], body=graph, num_scan_inputs=1, **options
    )
    x = np.arange(12, dtype=np.float32).reshape((3, 4) if options else (4, 3))
    assert "Scan" not in rewritten(*with_outer(node, {"s": np.ones(3, np.float32), "x": x}))


@pytest.mark.parametrize(("condition", "last"), [("k", "k_in"), ("", "true")])
def test_a_loop_of_a_constant_number_of_trips_is_unrolled(condition: str, last: str) -> None:
    true = helper.make_node("Constant", [], ["true"], value=helper.make_tensor("", 9, [], [True]))
    cast = helper.make_node("Cast", ["i"], ["e"], to=TensorProto.FLOAT)
    goes_on = helper.make_node("Identity", [last], ["k_out"])
    graph = body([true, cast, *STEP, goes_on], "i k_in s", "k_out s_out e_out")
    node = helper.make_node("Loop", ["n", condition, "s"], ["last", "y"], body=graph)
    constants = {"n": np.array(4), **({"k": np.array(True)} if condition else {})}
    assert "Loop" not in rewritten(*with_outer(node, {"s": np.ones(3, np.float32)}, constants))


@pytest.mark.parametrize(
    ("trips", "last", "said"),
    [
        (None, "k_in", "its number of iterations is not a constant of the model"),
        (4, "odd", "its number of iterations is not a constant of the model"),
        (10**9, "k_in", "its 1,000,000,000 steps of 4 operators are too many to unroll"),
    ],
)
def test_a_loop_that_is_not_unrolled_says_why(trips: int | None, last: str, said: str) -> None:
    odd = helper.make_node("Less", ["i", "i"], ["odd"])
    cast = helper.make_node("Cast", ["i"], ["e"], to=TensorProto.FLOAT)
    graph = body([odd, cast, *STEP[:2]], "i k_in s", f"{last} s_out")
    node = helper.make_node("Loop", ["n", "", "s"], ["last"], body=graph)
    feed: dict[str, Any] = {"s": np.ones(3, np.float32), "n": np.array(1, np.int64)}
    model, _ = with_outer(node, feed)
    if trips is not None:
        del model.graph.input[1]
        model.graph.initializer.add(name="n", data_type=7, int64_data=[trips])
    with pytest.raises(UnsupportedModelError, match=rf"Loop \(.*: {said}"):
        importable(model)


def with_outer(
    node: onnx.NodeProto, feed: dict[str, Any], constants: Any = None
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """The model of a node whose body reads `o`, a value of the graph, and its inputs."""
    constants = {"o": np.full(3, 0.5, np.float32), **(constants or {})}
    return operator_model(node, feed, constants), feed


def made(case: Case) -> tuple[Any, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The node, its inputs and its weights."""
    random = np.random.default_rng(0)

    def drawn(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) * 0.7).astype(np.float32)

    directions = 2 if case.direction == "bidirectional" else 1
    rows, is_lstm = GATES[case.operator] * HIDDEN, case.operator == "LSTM"
    weights = {"w": drawn(directions, rows, INPUTS), "r": drawn(directions, rows, HIDDEN)}
    feed = {"x": drawn(STEPS, BATCH, INPUTS)}
    if case.has_bias:
        weights["b"] = drawn(directions, 2 * rows)
    if case.lengths:
        feed["l"] = np.array(case.lengths, np.int32)
    if case.has_state:
        feed["h"] = drawn(directions, BATCH, HIDDEN)
        feed |= {"c": drawn(directions, BATCH, HIDDEN)} if is_lstm else {}
    if case.has_peepholes and is_lstm:
        weights["p"] = drawn(directions, 3 * HIDDEN)
    known = {**feed, **weights}
    names = [name if name in known else "" for name in ("x", "w", "r", "b", "l", "h", "c", "p")]
    outputs = ["y", "last", "cell"] if is_lstm else ["y", "last"]
    return (
        helper.make_node(
            case.operator,
            names if is_lstm else names[:6],
            outputs,
            hidden_size=HIDDEN,
            direction=case.direction,
            **options(case, directions),
        ),
        feed,
        weights,
    )


def options(case: Case, directions: int) -> dict[str, Any]:
    of_one = {"input_forget": "LSTM", "linear_before_reset": "GRU"}
    found = {
        key: value for key, value in case.options if of_one.get(key, case.operator) == case.operator
    }
    if case.activation:
        found["activations"] = [case.activation] * ACTIVATIONS[case.operator] * directions
    return found
