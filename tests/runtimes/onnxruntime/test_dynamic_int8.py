"""Models with matrix products of int8, written by the child that builds them."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import NodeProto, helper

from tests.support.models.quantized import quantized
from tests.support.small_onnx import chain_model, conv_model
from tunegate.runtimes.build_messages import Refused, Written
from tunegate.runtimes.onnxruntime.operator_profile import InsertedNodes
from tunegate.runtimes.onnxruntime.runtime import MODEL, RUNTIME


def reply(root: Path, model: onnx.ModelProto, samples: tuple[int, ...]) -> Written | Refused:
    build = (RUNTIME.name, "int8.dynamic", {"precision": "int8"})
    return quantized(root, model, build, samples)


def test_a_quantized_model_says_its_error_against_float32(tmp_path: Path) -> None:
    written = reply(tmp_path, chain_model(layers=2, width=32), samples=(1, 2, 3))
    assert isinstance(written, Written), written
    assert written.sampled is not None
    assert all(0 < each < 0.1 for each in written.sampled.relative)
    nodes = onnx.load(tmp_path / "artifact" / MODEL).graph.node
    assert [node.op_type for node in nodes].count("MatMulInteger") == 2


def test_nothing_is_written_beside_the_model_of_the_user(tmp_path: Path) -> None:
    reply(tmp_path, chain_model(layers=1, width=8), samples=(1,))
    assert [each.name for each in (tmp_path / "models").iterdir()] == ["m.onnx"]


def test_a_quantized_model_that_is_asked_for_its_check_does_not_pass(tmp_path: Path) -> None:
    written = reply(tmp_path, chain_model(layers=1, width=32), samples=())
    assert isinstance(written, Written)
    assert written.check is not None
    assert not written.check.passed


@pytest.mark.parametrize("samples", [(), (1, 2)])
def test_a_model_without_matrix_products_is_refused(
    tmp_path: Path, samples: tuple[int, ...]
) -> None:
    refused = reply(tmp_path, conv_model(), samples)
    assert isinstance(refused, Refused)
    assert refused.reason == (
        "models/m.onnx: ONNX Runtime does not offer int8: "
        "no matrix product has constant weights to quantize."
    )


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


def test_a_circle_ends() -> None:
    loop = helper.make_node("Cast", ["a"], ["a"], name="loop")
    assert nodes(loop).layer_of("loop") == ""
