"""Activations with the arguments of the node, or their defaults."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from tvm.relax.frontend.onnx import from_onnx

from tests.support.operator_models import operator_model, rewritten
from tunegate.compiler.importing.graph_view import Replacement, attribute
from tunegate.compiler.importing.recurrent import activations_of, clipped
from tunegate.compiler.importing.rewriting import importable
from tunegate.errors import UnsupportedModelError


def written(**options: Any) -> list[Any] | None:
    """The node that the first activation of an RNN becomes, behind its clip."""
    node = helper.make_node("RNN", ["x", "w", "r"], ["y"], **options)
    found = activations_of(node, ("Tanh",), 1)
    if found is None:
        return None
    new = Replacement(node)
    clipped(node, found[0])(new, "x")
    return [made for made in new.nodes if made.op_type != "Constant"]


def test_the_default_is_that_of_the_operator() -> None:
    nodes = written()
    assert nodes is not None
    assert [node.op_type for node in nodes] == ["Tanh"]


def test_arguments_are_taken_from_the_node_and_the_rest_has_defaults() -> None:
    nodes = written(activations=["hardsigmoid"], activation_alpha=[0.5])
    assert nodes is not None
    assert attribute(nodes[0], "alpha") == pytest.approx(0.5)
    assert attribute(nodes[0], "beta") == pytest.approx(0.5)


def test_a_clip_comes_first() -> None:
    nodes = written(clip=2.0)
    assert nodes is not None
    assert [node.op_type for node in nodes] == ["Clip", "Tanh"]


# Operators on single numbers.


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


# Normalizations over several axes, and by length.

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


# Transposed convolutions to extents that the node says, beside ONNX Runtime.

RANDOM = np.random.default_rng(0)
FEED = {"x": RANDOM.standard_normal((1, 2, 3, 4)).astype(np.float32)}
WEIGHTS = {"w": RANDOM.standard_normal((2, 3, 3, 3)).astype(np.float32)}


def model(**options: Any) -> Any:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[3, 2], **options)
    return operator_model(node, FEED, WEIGHTS)


@pytest.mark.parametrize("shape", [[10, 9], [9, 8], [6, 5], [11, 10]])
@pytest.mark.parametrize("way", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
def test_pads_give_the_same_numbers(shape: list[int], way: str) -> None:
    before = model(output_shape=shape, auto_pad=way)
    rewritten(before, FEED)
    assert attribute(importable(before).graph.node[0], "output_shape") is None


def test_extents_that_no_pads_give_are_refused() -> None:
    beyond = model(output_shape=[9, 9])
    (shape,) = [each for each in beyond.graph.node[0].attribute if each.name == "output_shape"]
    shape.ints[:] = [20, 20]
    with pytest.raises(UnsupportedModelError, match="ConvTranspose"):
        importable(beyond)


# Operators that pick or mark places, by inputs.


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
