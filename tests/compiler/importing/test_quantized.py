"""Products of quantized numbers, beside ONNX Runtime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.support.operator_models import operator_model, rewritten

RANDOM = np.random.default_rng(0)
SCALARS = {
    "xs": np.array(0.02, np.float32),
    "xz": np.array(120, np.uint8),
    "ys": np.array(0.3, np.float32),
    "yz": np.array(100, np.uint8),
}
NAMES = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]


def whole(*shape: int, dtype: str = "uint8") -> np.ndarray:
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


@pytest.mark.parametrize("columns", [(), (5,)])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_matrix_product_is_scaled_and_rounded(columns: tuple[int, ...], dtype: str) -> None:
    feed = {"x": whole(2, 3, 4), "w": whole(4, 5, dtype=dtype)}
    scale = RANDOM.uniform(0.01, 0.02, columns).astype(np.float32)
    constants = {**SCALARS, "ws": scale, "wz": np.full(columns, 3, dtype)}
    node = helper.make_node("QLinearMatMul", NAMES, ["y"])
    model = operator_model(node, feed, constants)
    assert "QLinearMatMul" not in rewritten(model, feed)


@pytest.mark.parametrize("options", [{}, {"pads": [1, 1, 1, 1], "strides": [2, 2]}, {"group": 2}])
@pytest.mark.parametrize("channels", [(), (4,)])
def test_a_convolution_is_scaled_and_rounded(
    options: dict[str, Any], channels: tuple[int, ...]
) -> None:
    feed = {"x": whole(1, 2, 5, 5)}
    scale = RANDOM.uniform(0.01, 0.02, channels).astype(np.float32)
    weights = whole(4, 2 // options.get("group", 1), 3, 3, dtype="int8")
    constants = {
        **SCALARS,
        "w": weights,
        "ws": scale,
        "wz": np.zeros(channels, np.int8),
        "b": RANDOM.integers(-900, 900, 4).astype(np.int32),
    }
    node = helper.make_node("QLinearConv", [*NAMES, "b"], ["y"], **options)
    assert "ConvInteger" in rewritten(operator_model(node, feed, constants), feed)


@pytest.mark.parametrize("factor", [1.0, 0.0, -3.0])
def test_what_is_quantized_as_it_comes_has_the_same_scale(factor: float) -> None:
    feed = {"x": np.linspace(0.5, 4, 24, dtype=np.float32).reshape(4, 6) * np.float32(factor)}
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    assert "DynamicQuantizeLinear" not in rewritten(operator_model(node, feed), feed)
