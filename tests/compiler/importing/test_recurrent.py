"""LSTM, GRU and RNN, unrolled, beside ONNX Runtime's own."""

from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.support.operator_models import of_one, operator_model, replaced, rewritten
from tunegate.compiler.importing.graph_view import GraphView
from tunegate.compiler.importing.reductions import REDUCTIONS
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
    node, feed, weights = build(case)
    assert case.operator not in rewritten(operator_model(node, feed, weights), feed)


def test_one_that_is_too_long_says_how_long_it_is() -> None:
    for direction, steps, said in (("forward", 33, "are too many"), ("bidirectional", 17, "both")):
        node, feed, weights = build(Case(direction=direction))
        feed = {**feed, "x": np.zeros((steps, BATCH, INPUTS), np.float32)}
        with pytest.raises(UnsupportedModelError, match=rf"LSTM \(.*: its {steps} steps.*{said}"):
            importable(operator_model(node, feed, weights))


def test_several_that_are_too_long_together_are_refused_before_any_is_unrolled() -> None:
    """Each step is a third of a second of import, whoever's it is."""
    for steps, is_refused in ((16, False), (17, True)):
        node, feed, weights = build(Case("GRU"))
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


def build(case: Case) -> tuple[Any, dict[str, np.ndarray], dict[str, np.ndarray]]:
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


# Reductions.


DATA = np.random.default_rng(0).uniform(0.5, 2, (3, 2, 2)).astype(np.float32)
AXES = [[0], [1], [-1], [0, 2], [2, 1], [-3, 1], []]


@given(st.sampled_from(sorted(REDUCTIONS)), st.sampled_from(AXES), st.sampled_from([0, 1]))
@settings(max_examples=20, deadline=None)
def test_they_run_over_the_axes_of_the_input(operator: str, axes: list[int], keepdims: int) -> None:
    feed = {"x": DATA, "a": np.array(axes, np.int64)}
    replaced(operator, feed, keepdims=keepdims)


def test_no_axes_may_mean_nothing_is_reduced() -> None:
    feed = {"x": DATA, "a": np.zeros(0, np.int64)}
    assert replaced("ReduceSum", feed, noop_with_empty_axes=1) == ["Identity"]


def test_axes_of_one_number_are_no_choice() -> None:
    feed = {"x": DATA.reshape(3, *[1] * 20, 2, 1, 2), "a": np.array([-2, 1, -3])}
    assert replaced("ReduceMax", feed, keepdims=0).count("ReduceMax") == 2


def test_axes_that_may_be_any_of_many_are_refused() -> None:
    feed = {"x": np.ones((2,) * 12, np.float32), "a": np.arange(6)}
    model = of_one("ReduceSum", feed, keepdims=0)
    with pytest.raises(UnsupportedModelError, match="its axes are an input, one of 924 sets"):
        importable(model)


@pytest.mark.parametrize("operator", sorted(REDUCTIONS))
def test_of_nothing_they_give_what_onnx_runtime_gives(operator: str) -> None:
    feed = {"x": np.zeros((2, 0, 3), np.float32)}
    assert not replaced(operator, feed, {"a": np.array([1])})


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
def test_of_infinities_alone_they_are_infinite_where_that_is_asked(operator: str) -> None:
    sign = -1 if operator == "ReduceMax" else 1
    feed = {"x": np.where([[0, 1], [1, 1]], sign * np.inf, DATA[0]).astype(np.float32)}
    model = of_one(operator, feed, outputs="m", keepdims=0)
    assert rewritten(model, feed) == [operator]
    model.graph.node.append(helper.make_node("IsInf", ["m"], ["y"]))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.BOOL, []))
    assert "Where" in rewritten(model, feed)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("options", [{}, {"reverse": 1, "exclusive": 1}])
def test_sums_so_far_run_along_the_inputs_axis(axis: int, options: dict[str, Any]) -> None:
    feed = {"x": DATA, "a": np.array(axis, np.int32)}
    replaced("CumSum", feed, **options)
    replaced("CumProd", feed, opset=26, **options)


def test_axes_are_known_from_what_is_computed_of_the_result() -> None:
    feed = {"x": DATA, "a": np.array([1], np.int64)}
    model = of_one("ReduceSum", feed, keepdims=1)
    model.graph.node[0].output[0] = "squares"
    model.graph.node.append(helper.make_node("Sqrt", ["squares"], ["y"]))
    assert "Sqrt" in rewritten(model, feed)
    assert all(
        node.op_type != "ReduceSum" or GraphView(after).constant(node.input[1]) is not None
        for after in [importable(model)]
        for node in after.graph.node
    )


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
def test_truth_values_are_compared_as_integers(operator: str) -> None:
    feed = {"x": DATA > 1}
    assert "Cast" in replaced(operator, feed, {"a": np.array([1])})


def test_what_stays_without_elements_is_refused() -> None:
    feed = {"x": np.zeros((2, 0, 3), np.float32)}
    with pytest.raises(UnsupportedModelError, match="ReduceSum"):
        importable(of_one("ReduceSum", feed, {"a": np.array([2])}))


# Slice and Pad by numbers that are inputs.

WINDOWS_DATA = np.random.default_rng(0).standard_normal((4, 5, 3)).astype(np.float32)
BOUND = st.integers(-7, 7)


@given(
    st.permutations([0, 1, 2]),
    st.lists(st.tuples(BOUND, BOUND, st.sampled_from([-2, -1, 1, 2])), min_size=1, max_size=3),
    st.booleans(),
)
@settings(max_examples=20, deadline=None)
def test_slices_read_what_they_name(
    axes: list[int], bounds: list[tuple[int, int, int]], from_end: bool
) -> None:
    starts, ends, steps = (np.array(column, np.int64) for column in zip(*bounds, strict=True))
    chosen = np.array(axes[: len(bounds)], np.int64) - (3 if from_end else 0)
    feed = {"x": WINDOWS_DATA, "s": starts, "e": ends, "a": chosen, "t": steps}
    model = of_one("Slice", feed)
    assert "Slice" not in rewritten(model, feed)[-1:]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [[0, 1, 2, 1, 2, 0], [1, 0, 0, 3, 4, 2]])
def test_pads_fill_as_their_mode_says(mode: str, pads: list[int]) -> None:
    feed = {"x": WINDOWS_DATA, "p": np.array(pads, np.int64), "v": np.array(7, np.float32)}
    assert "Pad" not in replaced("Pad", feed, mode=mode)


def test_pads_of_some_axes_leave_the_others() -> None:
    feed = {"x": WINDOWS_DATA, "p": np.array([1, 2], np.int64), "a": np.array([-1], np.int64)}
    node = helper.make_node("Pad", ["x", "p", "", "a"], ["y"])
    assert "Pad" not in rewritten(operator_model(node, feed), feed)


# Resize by scales and sizes that are inputs, beside ONNX Runtime.

RESIZING_DATA = np.random.default_rng(0).standard_normal((1, 2, 4, 5)).astype(np.float32)
WAYS = [
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners"),
    *("asymmetric", "tf_crop_and_resize"),
]
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


@given(
    st.sampled_from(WAYS),
    st.sampled_from(["nearest", "linear", "cubic"]),
    st.sampled_from([[0.6, 0.5], [2.0, 1.8], [1.0, 3.0]]),
    st.sampled_from(NEAREST),
    st.sampled_from([0, 1]),
)
@example("tf_crop_and_resize", "linear", [2.0, 1.8], "floor", 0)
@example("half_pixel_symmetric", "cubic", [0.6, 0.5], "floor", 1)
@settings(max_examples=20, deadline=None)
def test_by_scales(
    way: str, mode: str, scales: list[float], nearest: str, is_excluded: int
) -> None:
    feed = {"x": RESIZING_DATA, "r": region(way), "s": np.array([1, 1, *scales], np.float32)}
    options: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": way}
    options |= {"nearest_mode": nearest} if mode == "nearest" else {}
    is_cubic = mode == "cubic" and way != "tf_crop_and_resize"
    options |= {"exclude_outside": is_excluded} if is_cubic else {}
    assert "Resize" not in replaced("Resize", feed, **options)


@given(
    st.sampled_from(["stretch", "not_larger", "not_smaller"]),
    st.sampled_from(["linear", "nearest"]),
)
@settings(max_examples=6, deadline=None)
def test_by_sizes_of_some_axes(policy: str, mode: str) -> None:
    feed = {"x": RESIZING_DATA, "s": np.array([7, 6], np.int64)}
    node = helper.make_node(
        "Resize", ["x", "", "", "s"], ["y"], axes=[3, 2], mode=mode, keep_aspect_ratio_policy=policy
    )
    assert "Resize" not in rewritten(operator_model(node, feed), feed)


def test_scales_without_elements_beside_sizes_are_none() -> None:
    """As exporters of opset 11 write them; TVM takes only one of both."""
    constants = {"r": np.zeros(0, np.float32), "s": np.zeros(0, np.float32)}
    constants["n"] = np.array([1, 2, 7, 6], np.int64)
    model = of_one("Resize", {"x": RESIZING_DATA}, constants)
    assert rewritten(model, {"x": RESIZING_DATA}) == ["Resize"]
    assert importable(model).graph.node[0].input[2] == ""


def region(way: str) -> np.ndarray:
    """A part of the last two axes that reaches beyond their ends."""
    whole = [0, 0, 0.1, -0.2, 1, 1, 0.7, 1.3] if way == "tf_crop_and_resize" else []
    return np.array(whole, np.float32)
