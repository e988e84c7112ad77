"""How exact a model asks to be computed follows from its weights and its operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.support.models.inexact import quantized_model
from tests.support.small_onnx import conv_model, matmul_model, one_node_model, save
from tunegate.errors import NotOfferedError
from tunegate.models.preparation import prepare
from tunegate.models.prepared import PreparedModel
from tunegate.models.reference.model_precision import ModelPrecision, precision_of, save_float16
from tunegate.models.reference.session import ReferenceSession
from tunegate.models.reference.tolerance import tolerance


def test_weights_that_are_mostly_float16_ask_for_float16(tmp_path: Path) -> None:
    model = matmul_model()
    half = numpy_helper.from_array(np.zeros((64, 64), "float16"), "half")
    model.graph.initializer.append(half)
    found = precision_of(save(model, tmp_path / "m.onnx"))
    assert found.allowed("float32", 0.0) == tolerance("float16")


def test_the_noise_of_the_reference_is_bounded(tmp_path: Path) -> None:
    floats, steps = ModelPrecision(), precision_of(save(quantized_model(), tmp_path / "m.onnx"))
    assert floats.allowed("float32", 0.002) == 0.004
    assert floats.allowed("float32", 1.0) == 0.01
    assert steps.allowed("float32", 0.02) == 0.04
    assert steps.allowed("uint8", 1.0) == 0.05


def test_what_is_counted_is_never_noise() -> None:
    assert ModelPrecision(tolerance=0.03).allowed("int64", 1.0) == 0.0


# Models converted to float16.


def prepared(model: onnx.ModelProto, root: Path) -> PreparedModel:
    file = save(model, root / "m.onnx")
    return prepare(file, shapes={}, into=root / "into", path="m.onnx")


def test_weights_are_halves_and_what_goes_in_and_out_is_as_before(tmp_path: Path) -> None:
    model = prepared(conv_model(), tmp_path)
    save_float16(model, tmp_path / "half.onnx")
    rng = np.random.default_rng(1)
    feed = {each.name: rng.random(each.shape, np.float32) for each in model.inputs}
    (wanted,) = ReferenceSession(model.original).run(feed)
    (found,) = ReferenceSession(tmp_path / "half.onnx").run(feed)
    assert found.dtype == np.float32
    error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    assert 0 < error < 0.01


def test_a_model_without_weights_is_not_offered(tmp_path: Path) -> None:
    with pytest.raises(NotOfferedError, match="no weights in float32"):
        save_float16(prepared(one_node_model("Relu"), tmp_path), tmp_path / "half.onnx")
