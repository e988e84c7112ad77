"""Layers drawn from those of real models: as they are, or with their sizes scaled together.

Conditional sampling (One-Shot Tuner, CC 2022): a size is not drawn apart from the others of its
layer, so that what is drawn could stand in a model.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from research.experience.layers.layer import ModelLayer, Scale, scaled

MIN_OPERATIONS, MAX_OPERATIONS = 5e5, 1.5e8
"""A layer below is measured to no purpose, one above takes the time of ten others."""
MAX_NUMBERS = 16_000_000
_AS_IT_IS = 0.5
_FACTORS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
_KNOWN_IN_A_ROW = 500
"""Nothing new is expected after so many draws of what was drawn already."""


class DrawnLayer(msgspec.Struct, frozen=True):
    """`models` are those that have the layer, or the one that it was scaled from."""

    layer: ModelLayer
    models: tuple[str, ...]


def drawn_layers(found: Iterable[tuple[str, ModelLayer]], seed: int) -> Iterator[DrawnLayer]:
    """Different ones, until nothing new is drawn. `found` are layers, each with its model. Every
    kind is drawn as often as another, however seldom models have it."""
    rng = random.Random(seed)  # noqa: S311 -- a sample, not a secret
    layers: dict[str, ModelLayer] = {}
    models: dict[str, set[str]] = defaultdict(set)
    for model, layer in found:
        layers[layer.digest] = layer
        models[layer.digest].add(model)
    kinds: dict[str, list[ModelLayer]] = defaultdict(list)
    for digest in sorted(layers):
        kinds[layers[digest].kind].append(layers[digest])
    seen: set[str] = set()
    known = 0
    while kinds and known < _KNOWN_IN_A_ROW:
        origin = rng.choice(kinds[rng.choice(sorted(kinds))])
        layer = _as_drawn(origin, rng)
        known += 1
        if layer.digest not in seen and is_measurable(layer):
            seen.add(layer.digest)
            known = 0
            yield DrawnLayer(layer, tuple(sorted(models.get(layer.digest, models[origin.digest]))))


def is_measurable(layer: ModelLayer) -> bool:
    """Returns True where a hundred candidates of the layer are measured in minutes."""
    is_fitting = MIN_OPERATIONS <= layer.operations <= MAX_OPERATIONS
    return is_fitting and layer.numbers <= MAX_NUMBERS


def _as_drawn(layer: ModelLayer, rng: random.Random) -> ModelLayer:
    if rng.random() < _AS_IT_IS:
        return layer
    return scaled(layer, Scale(channels=rng.choice(_FACTORS), extents=rng.choice(_FACTORS)))
