"""Operators that ONNX defines by others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.support.operator_models import operator_model, rewritten

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


def test_attention_that_shows_masked_scores_stays() -> None:
    feed = {"q": drawn(1, 2, 3, 4), "k": drawn(1, 2, 3, 4), "v": drawn(1, 2, 3, 4)}
    node = helper.make_node(
        "Attention", ["q", "k", "v"], ["y", "", "", "s"], is_causal=1, qk_matmul_output_mode=1
    )
    assert "Attention" in rewritten(operator_model(node, feed, opset=23), feed)


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
