"""Whether the shapes that a configuration gives still fit a model."""

from __future__ import annotations

from collections.abc import Mapping

from tunegate.artifacts.outlines import ModelInput


def fit(shapes: Mapping[str, tuple[int, ...]], inputs: tuple[ModelInput, ...]) -> bool:
    """Whether every named input is there with these dimensions, and no input stays open."""
    known = {value.name: value.dimensions for value in inputs}
    if not all(name in known and _fits(shape, known[name]) for name, shape in shapes.items()):
        return False
    return all(value.name in shapes or None not in value.dimensions for value in inputs)


def _fits(shape: tuple[int, ...], dimensions: tuple[int | None, ...]) -> bool:
    return len(shape) == len(dimensions) and all(
        wanted in (None, given) for given, wanted in zip(shape, dimensions, strict=True)
    )
