"""Operators on single numbers."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.support.operator_models import operator_model, rewritten


@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("negative", [0, 1])
def test_infinity_of_one_sign_is_told_from_the_other(positive: int, negative: int) -> None:
    feed = {"x": np.array([np.inf, -np.inf, 0, np.nan], np.float32)}
    node = helper.make_node(
        "IsInf", ["x"], ["y"], detect_positive=positive, detect_negative=negative
    )
    rewritten(operator_model(node, feed), feed)


@pytest.mark.parametrize(
    ("base", "exponent"),
    [("int32", "int32"), ("int64", "float32"), ("float32", "int64"), ("int32", "int64")],
)
def test_powers_of_whole_numbers_are_exact(base: str, exponent: str) -> None:
    feed = {"x": np.array([-3, 2, 0, 7], base), "p": np.array([3, 10, 0, 2], exponent)}
    rewritten(operator_model(helper.make_node("Pow", ["x", "p"], ["y"]), feed), feed)
