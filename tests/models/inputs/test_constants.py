from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from tests.support.graphs import node
from tunegate.models.inputs.constants import evaluated, tensor_values


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
    assert evaluated(made, arrays, 100).tolist() == expected


def test_nothing_is_known_of_what_does_not_fit_together() -> None:
    assert evaluated(node("Reshape", "x s", "y"), [np.arange(3), np.array([2])], 100) is None
    assert evaluated(node("Shape", "x", "y"), [(2, None)], 100) is None
    assert evaluated(node("Relu", "x", "y"), [np.arange(3)], 100) is None


def test_a_long_range_is_not_made() -> None:
    huge = [np.int64(0), np.int64(2**60), np.int64(1)]
    assert evaluated(node("Range", "a b c", "y"), huge, 100) is None


def test_a_large_tensor_and_one_outside_of_the_file_are_unknown() -> None:
    tensor = onnx.numpy_helper.from_array(np.arange(200), "t")
    assert tensor_values(tensor, 100) is None
    outside = onnx.TensorProto(dims=[2], data_type=7, data_location=onnx.TensorProto.EXTERNAL)
    assert tensor_values(outside, 100) is None
