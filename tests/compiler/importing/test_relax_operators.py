"""Operators in TVM's own words, compiled, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.support.operator_models import outputs_of
from tests.support.small_onnx import save
from tunegate.compiler.compile import handle_request
from tunegate.compiler.loader import TvmArtifact
from tunegate.config import TargetConfig
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.tune.compiler_protocol import BuildModel, Built
from tunegate.tune.protocol import ModelFile

CPU = TargetConfig(name="cpu", threads=1)
RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.integers(-128, 128, (4, 2, 3, 3)).astype(np.int8)


def test_a_model_of_them_gives_the_same_numbers(tmp_path: Path) -> None:
    feed: dict[str, np.ndarray] = {
        "q": RANDOM.integers(0, 256, (1, 2, 5, 5)).astype(np.uint8),
        "x": RANDOM.standard_normal((3, 4)).astype(np.float32),
        "w": RANDOM.standard_normal((5, 1, 4)).astype(np.float32),
    }
    model = save(everything(), tmp_path / "m.onnx")
    for ours, theirs in zip(
        built(model, feed, tmp_path), outputs_of(onnx.load(model), feed), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def everything() -> onnx.ModelProto:
    """A quantized convolution with padding, a running sum, and a GRU in both directions, and
    extremes of scalars, which crashed the compiler beside a convolution."""
    weights: dict[str, np.ndarray] = {
        "k": WEIGHTS,
        "scale": np.array(0.02, np.float32),
        "zero": np.array(120, np.uint8),
        "kscale": np.array([0.01, 0.02, 0.03, 0.01], np.float32),
        "kzero": np.zeros(4, np.int8),
        "axis": np.array(1, np.int64),
        "gw": RANDOM.standard_normal((2, 9, 4)).astype(np.float32),
        "gr": RANDOM.standard_normal((2, 9, 3)).astype(np.float32),
    }
    names = ["q", "scale", "zero", "k", "kscale", "kzero", "scale", "zero"]
    nodes = [
        helper.make_node("QLinearConv", names, ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("DynamicQuantizeLinear", ["x"], ["d", "ds", "dz"]),
        helper.make_node("CumSum", ["x", "axis"], ["b"], reverse=1),
        helper.make_node("GRU", ["w", "gw", "gr"], ["c"], hidden_size=3, direction="bidirectional"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("q", TensorProto.UINT8, [1, 2, 5, 5]),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4]),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [5, 1, 4]),
        ],
        [
            helper.make_tensor_value_info("a", TensorProto.UINT8, [1, 4, 5, 5]),
            helper.make_tensor_value_info("d", TensorProto.UINT8, [3, 4]),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, [3, 4]),
            helper.make_tensor_value_info("c", TensorProto.FLOAT, [5, 2, 1, 3]),
        ],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def built(model: Path, feed: dict[str, np.ndarray], place: Path) -> list[np.ndarray]:
    """What the model gives when it is built with default schedules."""
    request = BuildModel(
        model=ModelFile(file=str(model), path="m.onnx", shapes={}),
        target=CPU,
        records={},
        sources={},
        directory=str(place / "build"),
        scratch=str(place / "scratch"),
        seed=1,
    )
    assert isinstance(handle_request(request), Built)
    artifact = ArtifactFile.read(place / "build")
    return list(TvmArtifact(place / "build", artifact).run(feed))
