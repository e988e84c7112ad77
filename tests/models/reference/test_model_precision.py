"""How exact a model asks to be computed follows from its weights and its operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import numpy_helper

from tests.support.models.inexact import quantized_model
from tests.support.small_onnx import matmul_model, save
from tunegate.models.reference.model_precision import ModelPrecision, precision_of
from tunegate.models.reference.tolerance import tolerance


def test_float32_is_the_usual(tmp_path: Path) -> None:
    assert precision_of(save(matmul_model(), tmp_path / "m.onnx")) == ModelPrecision()


def test_weights_that_are_mostly_float16_ask_for_float16(tmp_path: Path) -> None:
    model = matmul_model()
    half = numpy_helper.from_array(np.zeros((64, 64), "float16"), "half")
    model.graph.initializer.append(half)
    found = precision_of(save(model, tmp_path / "m.onnx"))
    assert found.allowed("float32", 0.0) == tolerance("float16")


def test_a_few_float16_weights_ask_for_nothing(tmp_path: Path) -> None:
    model = matmul_model()
    half = numpy_helper.from_array(np.zeros((4, 4), "float16"), "half")
    model.graph.initializer.append(half)
    assert precision_of(save(model, tmp_path / "m.onnx")).tolerance == 0.0


def test_the_noise_of_the_reference_is_bounded(tmp_path: Path) -> None:
    floats, steps = ModelPrecision(), precision_of(save(quantized_model(), tmp_path / "m.onnx"))
    assert floats.allowed("float32", 0.002) == 0.004
    assert floats.allowed("float32", 1.0) == 0.01
    assert steps.allowed("float32", 0.02) == 0.04
    assert steps.allowed("uint8", 1.0) == 0.05


def test_what_is_counted_is_never_noise() -> None:
    assert ModelPrecision(tolerance=0.03).allowed("int64", 1.0) == 0.0
