"""Operators that ONNX defines by others."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.support.operator_models import operator_model, rewritten
from tests.support.small_onnx import conv_model, matmul_model, one_node_model
from tunegate.compiler.importing.graph_view import Replacement
from tunegate.compiler.importing.rewriting import importable
from tunegate.errors import UnsupportedModelError

RANDOM = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("options", [{}, {"is_causal": 1}, {"scale": 0.3, "softcap": 2.0}])
@pytest.mark.parametrize("heads", [2, 4])
def test_attention_with_and_without_what_came_before(options: dict[str, Any], heads: int) -> None:
    feed = {"q": drawn(1, 4, 3, 8), "k": drawn(1, heads, 5, 8), "v": drawn(1, heads, 5, 8)}
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], **options)
    assert "Attention" not in rewritten(operator_model(node, feed, opset=23), feed)
    feed |= {"pk": drawn(1, heads, 2, 8), "pv": drawn(1, heads, 2, 8)}
    names = ["q", "k", "v", "", "pk", "pv"]
    node = helper.make_node("Attention", names, ["y", "nk", "nv"], **options)
    assert "Attention" not in rewritten(operator_model(node, feed, opset=23), feed)


def test_attention_of_rows_with_a_mask() -> None:
    feed = {"q": drawn(1, 3, 8), "k": drawn(1, 5, 8), "v": drawn(1, 5, 8), "m": drawn(3, 5)}
    node = helper.make_node("Attention", ["q", "k", "v", "m"], ["y"], q_num_heads=2, kv_num_heads=2)
    assert "Attention" not in rewritten(operator_model(node, feed, opset=23), feed)


def test_attention_that_shows_masked_scores_is_refused_in_a_sentence() -> None:
    feed = {"q": drawn(1, 2, 3, 4), "k": drawn(1, 2, 3, 4), "v": drawn(1, 2, 3, 4)}
    node = helper.make_node(
        "Attention", ["q", "k", "v"], ["y", "", "", "s"], is_causal=1, qk_matmul_output_mode=1
    )
    with pytest.raises(UnsupportedModelError) as caught:
        importable(operator_model(node, feed, opset=23))
    assert str(caught.value) == (
        "operator Attention (the node that makes y) is not supported by the compiler: its scores "
        "are an output, and it masks some of them"
    )


@pytest.mark.parametrize("interleaved", [0, 1])
def test_a_rotary_embedding(interleaved: int) -> None:
    feed = {"x": drawn(1, 2, 3, 8), "c": drawn(1, 3, 4), "s": drawn(1, 3, 4)}
    node = helper.make_node("RotaryEmbedding", ["x", "c", "s"], ["y"], interleaved=interleaved)
    assert "RotaryEmbedding" not in rewritten(operator_model(node, feed, opset=23), feed)


@pytest.mark.parametrize("axis", [0, -1])
def test_a_normalization_that_shows_its_mean(axis: int) -> None:
    feed = {"x": drawn(2, 3, 4), "s": drawn(*(2, 3, 4)[axis:])}
    node = helper.make_node("LayerNormalization", ["x", "s"], ["y", "m", "d"], axis=axis)
    assert "LayerNormalization" not in rewritten(operator_model(node, feed), feed)


# Nodes that stand for another one.

NODE = helper.make_node("Odd", ["x"], ["y"], name="here")


def test_names_begin_with_those_of_the_node_and_are_each_used_once() -> None:
    new = Replacement(NODE)
    new.add("Add", [new.constant(1, np.float32), new.cast("x", 1)], to="y")
    outputs = [name for node in new.nodes for name in node.output]
    assert len(set(outputs)) == len(outputs)
    assert all(name.startswith("y") for name in outputs)
    assert all(node.name.startswith("here/") for node in new.nodes)
    assert outputs[-1] == "y"


def test_a_node_without_a_name_lends_its_output() -> None:
    new = Replacement(helper.make_node("Odd", ["x"], ["", "z"]))
    assert new.sliced("x", 0, 1, 2).startswith("z/")


# A model is put in other words only where that is needed.


def test_a_model_that_tvm_takes_is_the_very_same() -> None:
    for model in (conv_model(), matmul_model(), one_node_model("Sigmoid")):
        assert importable(model) is model


def test_an_operator_that_nobody_knows_stays() -> None:
    model = one_node_model("Sigmoid")
    model.graph.node[0].op_type = "Odd"
    assert importable(model) is model


def test_what_a_rule_writes_is_folded_and_looked_at_again() -> None:
    feed = {"x": np.ones((2, 3, 4), np.float32)}
    scale = {"s": np.full((2, 3, 4), 2, np.float32)}
    node = helper.make_node("LayerNormalization", ["x", "s"], ["y", "m"], axis=0)
    operators = rewritten(operator_model(node, feed, scale), feed)
    assert "Shape" not in operators
    assert "Constant" not in operators


def test_inputs_and_outputs_keep_their_names_and_order() -> None:
    feed = {"x": np.ones((2, 3), np.float32), "s": np.array([3, 2], np.int64)}
    model = operator_model(helper.make_node("Reshape", ["x", "s"], ["y"]), feed)
    after = importable(model)
    assert [value.name for value in after.graph.input] == ["x", "s"]
    assert [value.name for value in after.graph.output] == ["y"]
    onnx.checker.check_model(after)
