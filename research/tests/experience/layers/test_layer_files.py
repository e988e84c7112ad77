from __future__ import annotations

from pathlib import Path

import msgspec
from tests.support.small_onnx import conv_model, save

from research.experience.layers.drawing import DrawnLayer
from research.experience.layers.graph_layers import layers_of
from research.experience.layers.layer_files import layers_of_models, word_for_model, written_layer
from research.tests.experience.layers.test_layer import PRODUCT
from tunegate.artifacts.inputs import ShapedModel


def test_layers_come_with_a_word_for_their_model_that_is_not_its_name(tmp_path: Path) -> None:
    model = ShapedModel(save(conv_model(), tmp_path / "m.onnx"), {})
    ((word, layer),) = layers_of_models({"secret/m.onnx": model})
    assert word == word_for_model("secret/m.onnx") != word_for_model("secret/n.onnx")
    assert "secret" not in word
    assert layer.kind == "convolution"


def test_a_drawn_layer_is_a_file_of_its_own(tmp_path: Path) -> None:
    file = written_layer(DrawnLayer(PRODUCT, ("a",)), tmp_path / "layers")
    assert file is not None
    assert layers_of(file, {}) == [PRODUCT]


def test_sizes_that_do_not_fit_together_are_no_file(tmp_path: Path) -> None:
    broken = msgspec.structs.replace(PRODUCT, operands=((1, 64, 128), (64, 256)))
    assert written_layer(DrawnLayer(broken, ()), tmp_path) is None
