"""A model is put in other words only where that is needed."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from tests.support.operator_models import operator_model, rewritten
from tests.support.small_onnx import conv_model, matmul_model, one_node_model
from tunegate.compiler.importing.rewriting import importable


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
