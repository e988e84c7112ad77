"""The layers of models in files, and drawn layers as files of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from research.experience.layers.drawing import DrawnLayer
from research.experience.layers.graph_layers import layers_of
from research.experience.layers.layer import ModelLayer
from research.experience.layers.layer_model import layer_model
from tunegate.artifacts.inputs import ShapedModel

_DIGITS = 12


def layers_of_models(models: Mapping[str, ShapedModel]) -> Iterator[tuple[str, ModelLayer]]:
    """Each layer with the digest of its model's name: enough to tell models apart."""
    for name, model in models.items():
        for layer in layers_of(model.file, model.shapes):
            yield word_for_model(name), layer


def word_for_model(name: str) -> str:
    """A word for a model that does not say its name."""
    return hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]


def written_layer(drawn: DrawnLayer, directory: Path) -> Path | None:
    """The file of a model that is this layer alone; None where its sizes, scaled, do not fit
    together."""
    try:
        model = layer_model(drawn.layer)
    except Exception:  # noqa: BLE001 -- onnx and numpy raise several kinds for sizes that do not fit
        return None
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{drawn.layer.digest}.onnx"
    file.write_bytes(model.SerializeToString())
    return file
