"""Detections are compared as sets, and a build that detects something else is still refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.small_onnx import save
from tunegate.artifacts.builds import NumericCheck
from tunegate.models.reference.comparison import compared
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor

ANCHORS, PICKED, WIDTH = 400, 50, 16
Outputs = list[Any]


def detector(*, moved: float = 0.0, spread: float = 3e-6) -> onnx.ModelProto:
    """A detector that detects nothing: its scores lie within some roundings of each other."""
    random = np.random.default_rng(0)
    scores = random.standard_normal((WIDTH, ANCHORS)) * spread
    bias = 1 + moved * np.random.default_rng(7).choice([-1, 1], ANCHORS)
    weights = {
        "ws": scores.astype(np.float32),
        "wb": random.standard_normal((WIDTH, ANCHORS * 4)).astype(np.float32),
        "bias": bias.astype(np.float32),
    }
    constants = {
        "k": np.array([PICKED]),
        "boxes_shape": np.array([1, ANCHORS, 4]),
        "last": np.array([2]),
        "four": np.array([1, 1, 4]),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "ws"], ["s"]),
        helper.make_node("Add", ["s", "bias"], ["scores"]),
        helper.make_node("MatMul", ["x", "wb"], ["flat"]),
        helper.make_node("Reshape", ["flat", "boxes_shape"], ["boxes"]),
        helper.make_node("TopK", ["scores", "k"], ["best", "places"], axis=1),
        helper.make_node("Unsqueeze", ["places", "last"], ["index"]),
        helper.make_node("Tile", ["index", "four"], ["indices"]),
        helper.make_node("GatherElements", ["boxes", "indices"], ["picked"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, WIDTH])],
        [
            helper.make_tensor_value_info("picked", TensorProto.FLOAT, [1, PICKED, 4]),
            helper.make_tensor_value_info("best", TensorProto.FLOAT, [1, PICKED]),
            helper.make_tensor_value_info("places", TensorProto.INT64, [1, PICKED]),
        ],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in {**weights, **constants}.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def check_of(change: Callable[[Outputs], Outputs], tmp_path: Path, **other: float) -> NumericCheck:
    """The check of a build with weights a rounding away, whose outputs are changed."""
    import onnxruntime  # noqa: PLC0415

    file = save(detector(), tmp_path / "m.onnx")
    build = onnxruntime.InferenceSession(detector(**other).SerializeToString())
    artifact = ArtifactFile(
        runtime="any",
        file="m.onnx",
        inputs=(ArtifactTensor("x", (1, WIDTH), "float32"),),
        outputs=(
            ArtifactTensor("picked", (1, PICKED, 4), "float32"),
            ArtifactTensor("best", (1, PICKED), "float32"),
            ArtifactTensor("places", (1, PICKED), "int64"),
        ),
        threads=1,
    )
    found = compared(lambda feed: change(build.run(None, dict(feed))), file, artifact, (1, 2))
    assert isinstance(found, NumericCheck)
    return found


def as_it_is(outputs: Outputs) -> Outputs:
    return outputs


def test_equal_detections_in_another_order_are_equal(tmp_path: Path) -> None:
    def shuffled(outputs: Outputs) -> Outputs:
        order = np.random.default_rng(3).permutation(PICKED)
        return [each[:, order] for each in outputs]

    check = check_of(shuffled, tmp_path)
    assert (check.passed, check.max_relative) == (True, 0.0)


def test_rows_at_the_end_that_come_and_go_by_rounding_are_allowed(tmp_path: Path) -> None:
    assert check_of(as_it_is, tmp_path, moved=2**-20).passed


def boxes_off(outputs: Outputs) -> Outputs:
    return [outputs[0] * np.float32(1.01), *outputs[1:]]


def boxes_of_others(outputs: Outputs) -> Outputs:
    """Each box is right, and has the score and the place of another."""
    return [np.roll(outputs[0], 1, axis=1), *outputs[1:]]


def one_again_and_again(outputs: Outputs) -> Outputs:
    return [np.repeat(each[:, :1], PICKED, axis=1) for each in outputs]


def one_is_wrong(outputs: Outputs) -> Outputs:
    outputs[0][0, 0] += 1
    return outputs


def some_are_wrong(outputs: Outputs) -> Outputs:
    """More than come and go by rounding."""
    outputs[0][0, ::3] += 1
    return outputs


@pytest.mark.parametrize(
    "wrong", [boxes_off, boxes_of_others, one_again_and_again, one_is_wrong, some_are_wrong]
)
def test_other_detections_are_refused(wrong: Callable[[Outputs], Outputs], tmp_path: Path) -> None:
    check = check_of(wrong, tmp_path)
    assert not check.passed
    assert check.detail.startswith("output ")
