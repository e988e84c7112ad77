"""Operators that pick or mark places, by inputs."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from tvm.relax.frontend.onnx import from_onnx

from tests.support.operator_models import operator_model, rewritten
from tunegate.compiler.importing.rewriting import importable

DATA = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_one_hot_marks_places_from_either_end(axis: int, dtype: str) -> None:
    feed = {
        "i": np.array([[0, 4, -1], [-5, 9, 2]], dtype),
        "d": np.array([5], dtype),
        "v": np.array([2, 3], np.float32),
    }
    node = helper.make_node("OneHot", ["i", "d", "v"], ["y"], axis=axis)
    assert "OneHot" not in rewritten(operator_model(node, feed), feed)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_one_hot_has_the_type_of_its_values(dtype: str) -> None:
    feed = {"i": np.array([[0, 4, -1], [-5, 9, 2]], "int64")}
    constants = {"d": np.array(5, "int64"), "v": np.array([0, 1], dtype)}
    node = helper.make_node("OneHot", ["i", "d", "v"], ["y"])
    model = operator_model(node, feed, constants)
    imported = from_onnx(importable(model), opset=model.opset_import[0].version)
    assert str(imported["main"].ret_ty.dtype.dtype) == dtype
    assert "OneHot" not in rewritten(model, feed)


@pytest.mark.parametrize("diagonal", [-2, 0, 1])
@pytest.mark.parametrize("upper", [0, 1])
def test_a_triangle_begins_at_its_diagonal(diagonal: int, upper: int) -> None:
    feed = {"x": DATA, "k": np.array(diagonal, np.int64)}
    node = helper.make_node("Trilu", ["x", "k"], ["y"], upper=upper)
    assert "Trilu" not in rewritten(operator_model(node, feed), feed)


def test_features_are_picked_from_the_last_axis() -> None:
    feed = {"x": DATA[0], "i": np.array([[3, 0]], np.int64)}
    node = helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain="ai.onnx.ml")
    assert "ArrayFeatureExtractor" not in rewritten(operator_model(node, feed), feed)


def test_a_dropout_that_drops_nothing_shows_so() -> None:
    feed = {"x": DATA}
    node = helper.make_node("Dropout", ["x"], ["y", "m"])
    assert "Dropout" not in rewritten(operator_model(node, feed), feed)
