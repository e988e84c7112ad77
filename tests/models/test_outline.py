from __future__ import annotations

import pytest
from onnx import TensorProto, helper

from tests.support.small_onnx import conv_model, matmul_model
from tunegate.artifacts.changes import ModelInput
from tunegate.errors import ModelError
from tunegate.models.graph import graph_digest, outline_of


def test_an_outline_counts_operators_and_weights_and_names_the_inputs() -> None:
    model = conv_model().SerializeToString()
    found = outline_of(model)
    assert found.parts == {"Conv": 1, "Relu": 1, "[8, 8, 3, 3]": 1, "[8]": 1}
    assert found.inputs == (ModelInput("x", (1, 8, 8, 8), dtype="float32"),)
    assert found.graph_digest == graph_digest(model)


def test_an_open_dimension_is_none() -> None:
    found = outline_of(matmul_model(rows="batch").SerializeToString())
    assert found.inputs == (ModelInput("x", (None, 16), ("batch", ""), dtype="float32"),)


def test_random_operators_with_a_seed_are_found_inside_a_branch_too() -> None:
    model = matmul_model()
    branch = helper.make_graph(
        [helper.make_node("RandomUniform", [], ["r"], shape=[1], seed=7.0)],
        "branch",
        [],
        [helper.make_tensor_value_info("r", TensorProto.FLOAT, [1])],
    )
    model.graph.node.append(
        helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch)
    )
    model.graph.node.append(helper.make_node("RandomNormal", [], ["n"], shape=[1]))
    assert outline_of(model.SerializeToString()).seeded == ("RandomUniform",)


def test_what_is_no_model_has_no_outline() -> None:
    with pytest.raises(ModelError):
        outline_of(b"no model")
