"""Resize by scales and sizes that are inputs, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.support.operator_models import operator_model, rewritten
from tunegate.compiler.importing.rewriting import importable

DATA = np.random.default_rng(0).standard_normal((1, 2, 4, 5)).astype(np.float32)
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
    feed = {"x": DATA, "s": np.array([1, 1, *scales], np.float32), "r": region(way)}
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
    feed = {"x": DATA, "s": np.array([7, 6], np.int64)}
    node = helper.make_node(
        "Resize",
        ["x", "", "", "s"],
        ["y"],
        axes=[3, 2],
        mode=mode,
        keep_aspect_ratio_policy=policy,
    )
    assert "Resize" not in rewritten(operator_model(node, feed), feed)


def test_scales_without_elements_beside_sizes_are_none() -> None:
    """As exporters of opset 11 write them; TVM takes only one of both."""
    constants = {"r": np.zeros(0, np.float32), "s": np.zeros(0, np.float32)}
    constants["n"] = np.array([1, 2, 7, 6], np.int64)
    node = helper.make_node("Resize", ["x", "r", "s", "n"], ["y"])
    model = operator_model(node, {"x": DATA}, constants)
    assert rewritten(model, {"x": DATA}) == ["Resize"]
    assert importable(model).graph.node[0].input[2] == ""


def test_one_that_smooths_stays() -> None:
    feed = {"x": DATA, "s": np.array([1, 1, 0.5, 0.5], np.float32)}
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear", antialias=1)
    assert rewritten(operator_model(node, feed), feed) == ["Resize"]


def region(way: str) -> np.ndarray:
    """A part of the last two axes that reaches beyond their ends."""
    whole = [0, 0, 0.1, -0.2, 1, 1, 0.7, 1.3] if way == "tf_crop_and_resize" else []
    return np.array(whole, np.float32)
