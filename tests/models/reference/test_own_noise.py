"""What ONNX Runtime itself does not know of a model's numbers is measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from tests.support.models.inexact import cancelling_model
from tests.support.small_onnx import matmul_model, save
from tunegate.models.reference.comparison import own_noise
from tunegate.models.reference.session import ReferenceSession


def noise_of(model: onnx.ModelProto, directory: Path, shape: tuple[int, ...]) -> tuple[float, ...]:
    file = save(model, directory / "m.onnx")
    feed = {"x": np.random.default_rng(1).standard_normal(shape).astype("float32")}
    return own_noise(file, [feed], [ReferenceSession(file).run(feed)])


def test_a_product_is_as_exact_as_its_type(tmp_path: Path) -> None:
    (noise,) = noise_of(matmul_model(), tmp_path, (16, 16))
    assert noise < 1e-5


def test_a_difference_of_nearly_equal_sums_shows_how_they_are_rounded(tmp_path: Path) -> None:
    (exact,) = noise_of(cancelling_model(0.0), tmp_path, (4, 64))
    (noise,) = noise_of(cancelling_model(3000.0), tmp_path, (4, 64))
    assert exact < 1e-5
    assert noise > 1e-3


def test_integers_have_no_noise(tmp_path: Path) -> None:
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("ArgMax", ["x"], ["y"], axis=1)],
        "g",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4, 64])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT64, [4, 1])],
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)
    assert noise_of(model, tmp_path, (4, 64)) == (0.0,)
