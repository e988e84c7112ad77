"""Reductions and sums so far along axes that are inputs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.support.operator_models import operator_model, rewritten
from tunegate.compiler.importing.graph_view import GraphView
from tunegate.compiler.importing.reductions import REDUCTIONS
from tunegate.compiler.importing.rewriting import importable
from tunegate.errors import UnsupportedModelError

DATA = np.random.default_rng(0).uniform(0.5, 2, (3, 2, 2)).astype(np.float32)
AXES = [[0], [1], [-1], [0, 2], [2, 1], [-3, 1], []]


@given(st.sampled_from(sorted(REDUCTIONS)), st.sampled_from(AXES), st.sampled_from([0, 1]))
@settings(max_examples=20, deadline=None)
def test_they_run_over_the_axes_that_the_input_names(
    operator: str, axes: list[int], keepdims: int
) -> None:
    feed = {"x": DATA, "a": np.array(axes, np.int64)}
    node = helper.make_node(operator, ["x", "a"], ["y"], keepdims=keepdims)
    rewritten(operator_model(node, feed), feed)


def test_no_axes_may_mean_nothing_is_reduced() -> None:
    feed = {"x": DATA, "a": np.zeros(0, np.int64)}
    node = helper.make_node("ReduceSum", ["x", "a"], ["y"], noop_with_empty_axes=1)
    assert rewritten(operator_model(node, feed), feed) == ["Identity"]


@pytest.mark.parametrize("operator", sorted(REDUCTIONS - {"ReduceMean"}))
def test_of_nothing_they_give_what_onnx_runtime_gives(operator: str) -> None:
    feed = {"x": np.zeros((2, 0, 3), np.float32)}
    node = helper.make_node(operator, ["x", "a"], ["y"])
    assert not rewritten(operator_model(node, feed, {"a": np.array([1])}), feed)


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
def test_of_infinities_alone_they_are_infinite_where_that_is_asked(operator: str) -> None:
    sign = -1 if operator == "ReduceMax" else 1
    feed = {"x": np.where([[0, 1], [1, 1]], sign * np.inf, DATA[0]).astype(np.float32)}
    node = helper.make_node(operator, ["x"], ["m"], keepdims=0)
    model = operator_model(node, feed)
    assert rewritten(model, feed) == [operator]
    model.graph.node.append(helper.make_node("IsInf", ["m"], ["y"]))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.BOOL, []))
    assert "Where" in rewritten(model, feed)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("options", [{}, {"reverse": 1, "exclusive": 1}])
def test_sums_so_far_run_along_the_axis_that_the_input_names(
    axis: int, options: dict[str, Any]
) -> None:
    feed = {"x": DATA, "a": np.array(axis, np.int32)}
    node = helper.make_node("CumSum", ["x", "a"], ["y"], **options)
    rewritten(operator_model(node, feed), feed)
    node = helper.make_node("CumProd", ["x", "a"], ["y"], **options)
    rewritten(operator_model(node, feed, opset=26), feed)


def test_axes_are_known_from_what_is_computed_of_the_result() -> None:
    feed = {"x": DATA, "a": np.array([1], np.int64)}
    model = operator_model(helper.make_node("ReduceSum", ["x", "a"], ["y"], keepdims=1), feed)
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
    node = helper.make_node(operator, ["x", "a"], ["y"])
    model = operator_model(node, feed, {"a": np.array([1])})
    assert "Cast" in rewritten(model, feed)


def test_what_stays_without_elements_is_refused() -> None:
    feed = {"x": np.zeros((2, 0, 3), np.float32)}
    node = helper.make_node("ReduceSum", ["x", "a"], ["y"])
    with pytest.raises(UnsupportedModelError, match="ReduceSum"):
        importable(operator_model(node, feed, {"a": np.array([2])}))


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
    node = helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"])
    model = operator_model(node, feed)
    assert "Slice" not in rewritten(model, feed)[-1:]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [[0, 1, 2, 1, 2, 0], [1, 0, 0, 3, 4, 2]])
def test_pads_fill_as_their_mode_says(mode: str, pads: list[int]) -> None:
    feed = {"x": WINDOWS_DATA, "p": np.array(pads, np.int64), "v": np.array(7, np.float32)}
    node = helper.make_node("Pad", ["x", "p", "v"], ["y"], mode=mode)
    assert "Pad" not in rewritten(operator_model(node, feed), feed)


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
    feed = {"x": RESIZING_DATA, "s": np.array([1, 1, *scales], np.float32), "r": region(way)}
    options: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": way}
    options |= {"nearest_mode": nearest} if mode == "nearest" else {}
    is_cubic = mode == "cubic" and way != "tf_crop_and_resize"
    options |= {"exclude_outside": is_excluded} if is_cubic else {}
    node = helper.make_node("Resize", ["x", "r", "s"], ["y"], **options)
    assert "Resize" not in rewritten(operator_model(node, feed), feed)


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
    node = helper.make_node("Resize", ["x", "r", "s", "n"], ["y"])
    model = operator_model(node, {"x": RESIZING_DATA}, constants)
    assert rewritten(model, {"x": RESIZING_DATA}) == ["Resize"]
    assert importable(model).graph.node[0].input[2] == ""


def region(way: str) -> np.ndarray:
    """A part of the last two axes that reaches beyond their ends."""
    whole = [0, 0, 0.1, -0.2, 1, 1, 0.7, 1.3] if way == "tf_crop_and_resize" else []
    return np.array(whole, np.float32)
