from __future__ import annotations

import pytest
from onnx import NodeProto, helper

from tunegate.runtimes.onnxruntime.operator_profile import InsertedNodes

NODES = [
    helper.make_node("ReorderInput", ["x"], ["token_0"], name="ReorderInput"),
    helper.make_node("Conv", ["token_0"], ["token_1"], name="relu1_nchwc"),
    helper.make_node("ReorderOutput", ["token_1"], ["r1"], name="ReorderOutput_token_76"),
    helper.make_node("Cast", ["y"], ["y_cast"], name="InsertedCast_y"),
    helper.make_node("Cast", ["y_cast"], ["y_back"], name="InsertedCast_y_back"),
]


def known(name: str, operator: str) -> str:
    return {"relu1_nchwc": "conv1"}.get(name, "") if operator == "Conv" else ""


def nodes(*more: NodeProto) -> InsertedNodes:
    return InsertedNodes([*NODES, *more], known)


@pytest.mark.parametrize("name", ["ReorderOutput_token_76", "ReorderInput"])
def test_a_change_of_layout_belongs_to_the_layer_that_it_is_for(name: str) -> None:
    assert nodes().layer_of(name) == "conv1"


def test_a_node_before_two_layers_belongs_to_the_one_that_it_prepares() -> None:
    between = helper.make_node("ReorderInput", ["r1"], ["token_2"], name="between")
    after = helper.make_node("Conv", ["token_2"], ["r2"], name="relu2_nchwc")
    found = InsertedNodes([*NODES, between, after], lambda name, _: name.removesuffix("_nchwc"))
    assert found.layer_of("between") == "relu2"


@pytest.mark.parametrize("name", ["InsertedCast_y", "unheard of", ""])
def test_what_belongs_to_no_layer_that_is_known_has_none(name: str) -> None:
    assert nodes().layer_of(name) == ""


def test_a_circle_ends() -> None:
    loop = helper.make_node("Cast", ["a"], ["a"], name="loop")
    assert nodes(loop).layer_of("loop") == ""
