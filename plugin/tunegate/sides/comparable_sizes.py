"""The sizes that make base and head the same work where the base's are static."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.artifacts.outlines import ModelInput
from tunegate.input_shapes import takes


def sizes_of_base(
    base: Sequence[ModelInput], head: Sequence[ModelInput]
) -> dict[str, tuple[int, ...]]:
    """The base's static shapes, for the inputs that the head leaves open. The base cannot be run at
    others, and the head can be run at these."""
    static = {value.name: shape for value in base if (shape := _static(value)) is not None}
    return {
        value.name: static[value.name]
        for value in head
        if value.name in static and _static(value) is None and takes(value, static[value.name])
    }


def _static(value: ModelInput) -> tuple[int, ...] | None:
    sizes = tuple(size for size in value.dimensions if size is not None)
    return sizes if value.is_ranked and len(sizes) == len(value.dimensions) else None
