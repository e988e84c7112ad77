"""Models quantized with the ranges of inputs, written by the child that builds them."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.support.graphs import node
from tests.support.models.inexact import STATIC, quantized
from tests.support.small_onnx import conv_model, model_of, one_node_model, part_of
from tunegate.artifacts.inputs import Files, InputRule, Uniform
from tunegate.runtimes.builder import Refused, WrittenBuild

IN_RANGE = InputRule(Uniform(-1.0, 1.0))


def reply(
    root: Path,
    model: onnx.ModelProto,
    *,
    given: dict[str, InputRule] | None = None,
    samples: int = 4,
    runtime: str = "onnxruntime",
) -> WrittenBuild | Refused:
    seeds = tuple(range(10, 10 + samples))
    rules = {"x": IN_RANGE} if given is None else given
    return quantized(root, model, (runtime, "int8", STATIC), seeds, rules)


def branching_model() -> onnx.ModelProto:
    """A product in both branches, and none outside of them."""
    product = helper.make_node("MatMul", ["x", "w"], ["r"])
    body = part_of([product], {}, {"r": [1, 4]}, {"w": np.ones((4, 4), np.float32)})
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Cast", ["sum"], ["c"], to=onnx.TensorProto.BOOL),
        helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body),
    ]
    return model_of(nodes, {"x": [1, 4]}, {"y": [1, 4]})


def operators(root: Path) -> list[str]:
    return [node.op_type for node in onnx.load(root / "artifact" / "model.onnx").graph.node]


@pytest.mark.parametrize(
    "runtime", ["onnxruntime", pytest.param("openvino", marks=pytest.mark.pipelines)]
)
def test_convolutions_are_quantized_with_their_error_told(tmp_path: Path, runtime: str) -> None:
    written = reply(tmp_path, conv_model(), runtime=runtime)
    assert isinstance(written, WrittenBuild), written
    assert written.sampled is not None
    assert len(written.sampled.relative) == 4
    assert all(0 < each < 0.05 for each in written.sampled.relative)
    assert "QuantizeLinear" in operators(tmp_path)
    assert not [each for each in (tmp_path / "artifact").iterdir() if each.is_dir()]


def test_a_model_of_an_old_opset_is_quantized_by_channel(tmp_path: Path) -> None:
    model = conv_model()
    model.opset_import[0].version = 11
    assert isinstance(reply(tmp_path, model), WrittenBuild)


def test_the_ranges_are_those_of_the_given_values(tmp_path: Path) -> None:
    wide = InputRule(Uniform(-9.0, 9.0))
    steps = []
    for name, rule in (("narrow", IN_RANGE), ("wide", wide)):
        assert isinstance(reply(tmp_path / name, conv_model(), given={"x": rule}), WrittenBuild)
        graph = onnx.load(tmp_path / name / "artifact" / "model.onnx").graph
        values = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
        steps.append(float(values["x_scale"]))
    assert steps == pytest.approx([2 / 255, 18 / 255], rel=0.05)


def test_the_cases_that_calibrated_tell_no_error(tmp_path: Path) -> None:
    files = [tmp_path / f"{case}.npy" for case in range(5)]
    for case, file in enumerate(files):
        np.save(file, np.random.default_rng(case).uniform(-1, 1, (1, 8, 8, 8)).astype("float32"))
    given = {"x": InputRule(Files(tuple(map(str, files))))}
    written = reply(tmp_path, conv_model(), given=given, samples=20)
    assert isinstance(written, WrittenBuild), written
    assert written.sampled is not None
    assert len(written.sampled.relative) == 4


@pytest.mark.parametrize(
    ("model", "given", "said"),
    [
        (one_node_model("Neg"), None, "no convolution and no matrix product to quantize"),
        (branching_model(), None, "to quantize outside of its branches and loops"),
        (conv_model(), {}, "there are none for x: write them under inputs: in tunegate.yaml"),
    ],
)
def test_what_cannot_be_calibrated_says_why(
    tmp_path: Path, model: onnx.ModelProto, given: dict[str, InputRule] | None, said: str
) -> None:
    refused = reply(tmp_path, model, given=given)
    assert isinstance(refused, Refused)
    assert said in refused.reason


def test_a_product_whose_bias_is_a_row_is_quantized(tmp_path: Path) -> None:
    """ONNX Runtime makes one Gemm of the product and the sum."""
    random = np.random.default_rng(0)
    arrays = {"w": random.normal(size=(8, 8)), "b": random.normal(size=(1, 8))}
    weights = {name: array.astype(np.float32) for name, array in arrays.items()}
    nodes = [node("MatMul", "x w", "h"), node("Add", "h b", "y")]
    model = model_of(nodes, {"x": [4, 8]}, {"y": [4, 8]}, weights)
    assert isinstance(reply(tmp_path, model), WrittenBuild)
    assert operators(tmp_path).count("QuantizeLinear") == 2
