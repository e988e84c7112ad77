"""What is given by an input, and known from the result."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tests.support.operator_models import operator_model, outputs_of, rewritten
from tunegate.compiler.importing.graph_view import GraphView
from tunegate.compiler.importing.rewriting import importable

DATA = np.random.default_rng(0).standard_normal((2, 1, 6)).astype(np.float32)


@pytest.mark.parametrize(
    ("operator", "operand"),
    [
        ("Reshape", [3, -1, 2]),
        ("Squeeze", [1]),
        ("Unsqueeze", [0, 3]),
        ("Expand", [3, 2, 4, 6]),
        ("Tile", [1, 2, 3]),
    ],
)
def test_the_extents_take_the_place_of_the_operand(operator: str, operand: list[int]) -> None:
    feed = {"x": DATA, "s": np.array(operand, np.int64)}
    model = operator_model(helper.make_node(operator, ["x", "s"], ["y"]), feed)
    rewritten(model, feed)
    view = GraphView(importable(model))
    assert all(view.constant(n.input[1]) is not None for n in importable(model).graph.node)


def test_a_shape_with_a_zero_is_taken_by_the_letter() -> None:
    feed = {"x": np.zeros((0, 4), np.float32), "s": np.array([2, 0], np.int64)}
    node = helper.make_node("Reshape", ["x", "s"], ["y"], allowzero=1)
    rewritten(operator_model(node, feed), feed)


def test_parts_and_best_places_are_counted_in_the_result() -> None:
    feed = {"x": DATA, "s": np.array([1, 5], np.int64)}
    split = operator_model(helper.make_node("Split", ["x", "s"], ["y", "z"], axis=2), feed)
    rewritten(split, feed)
    feed = {"x": DATA, "k": np.array([4], np.int64)}
    rewritten(operator_model(helper.make_node("TopK", ["x", "k"], ["y", "z"]), feed), feed)


def test_a_constant_of_a_shape_fills_it() -> None:
    feed = {"s": np.array([2, 3], np.int64)}
    value = numpy_helper.from_array(np.array([7], np.int32))
    node = helper.make_node("ConstantOfShape", ["s"], ["y"], value=value)
    model = operator_model(node, feed)
    assert (outputs_of(importable(model), feed)[0] == np.full((2, 3), 7)).all()


@pytest.mark.parametrize("size", [[2, 3, 4, 5], [2, 3, 2, 4, 5]])
def test_a_grid_has_the_extents_of_its_result(size: list[int]) -> None:
    rank = len(size) - 2
    theta = np.random.default_rng(0).standard_normal((2, rank, rank + 1)).astype(np.float32)
    feed = {"t": theta, "s": np.array(size, np.int64)}
    rewritten(operator_model(helper.make_node("AffineGrid", ["t", "s"], ["y"]), feed), feed)
