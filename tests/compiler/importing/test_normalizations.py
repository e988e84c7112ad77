"""Normalizations over several axes, and by length."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.support.operator_models import operator_model, rewritten

DATA = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)


def test_a_normalization_over_all_axes_is_one_of_a_row() -> None:
    feed = {"x": DATA, "s": DATA + 2, "b": DATA * 3}
    node = helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], axis=0)
    assert "Reshape" in rewritten(operator_model(node, feed), feed)


def test_one_over_some_axes_is_one_of_rows() -> None:
    """TVM would not turn its weights where the image before it has its channels last."""
    feed = {"x": DATA, "s": DATA[0], "b": DATA[1]}
    node = helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], axis=1)
    assert "Reshape" in rewritten(operator_model(node, feed), feed)


def test_one_over_the_last_axis_stays() -> None:
    feed = {"x": DATA, "s": DATA[0, 0]}
    node = helper.make_node("LayerNormalization", ["x", "s"], ["y"])
    assert rewritten(operator_model(node, feed), feed) == ["LayerNormalization"]


@pytest.mark.parametrize("axis", [0, -3])
def test_so_is_one_by_the_root_of_squares(axis: int) -> None:
    feed = {"x": DATA, "s": DATA + 2}
    node = helper.make_node("RMSNormalization", ["x", "s"], ["y"], axis=axis, epsilon=0.1)
    rewritten(operator_model(node, feed, opset=23), feed)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("axis", [-1, 0])
def test_what_has_no_length_stays_zero(power: int, axis: int) -> None:
    feed = {"x": DATA * (DATA[0, 0] > 0)}
    node = helper.make_node("LpNormalization", ["x"], ["y"], p=power, axis=axis)
    assert "LpNormalization" not in rewritten(operator_model(node, feed), feed)


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("offset", [0, 30])
def test_values_far_from_zero_keep_their_variance(opset: int, offset: int) -> None:
    feed = {"x": np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype("float32") + offset}
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"])
    operators = rewritten(operator_model(node, feed, opset=opset), feed)
    assert "MeanVarianceNormalization" not in operators
