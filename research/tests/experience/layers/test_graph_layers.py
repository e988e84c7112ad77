from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.small_onnx import conv_model, matmul_model, save

from research.experience.layers.graph_layers import layers_of
from research.experience.layers.layer import ModelLayer
from research.experience.layers.layer_model import layer_model
from research.tests.experience.layers.test_layer import LAYERS


def test_a_convolution_is_found_with_its_sizes_and_what_follows(tmp_path: Path) -> None:
    (layer,) = layers_of(save(conv_model(channels=4, out=8, size=6), tmp_path / "m.onnx"), {})
    assert (layer.kind, layer.follows) == ("convolution", ("Relu",))
    assert layer.operands == ((1, 4, 6, 6), (8, 4, 3, 3), (8,))
    assert layer.attributes["pads"] == (1, 1, 1, 1)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_is_found_in_the_model_that_is_made_of_it(
    layer: ModelLayer, tmp_path: Path
) -> None:
    assert layers_of(save(layer_model(layer), tmp_path / "m.onnx"), {}) == [layer]


def test_an_open_dimension_needs_its_shape(tmp_path: Path) -> None:
    file = save(matmul_model(rows="batch"), tmp_path / "m.onnx")
    assert layers_of(file, {}) == []
    (layer,) = layers_of(file, {"x": (4, 16)})
    assert layer.operands[0] == (4, 16)


def test_what_is_no_model_has_no_layers(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(b"\xff" * 64)
    assert layers_of(file, {}) == []
