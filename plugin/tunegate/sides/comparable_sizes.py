"""The sizes that make base and head the same work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tunegate.artifacts.outlines import ModelInput
from tunegate.input_shapes import takes

_Shapes = Mapping[str, tuple[int, ...]]


def static_sizes(
    fixed: Sequence[ModelInput], opened: Sequence[ModelInput]
) -> dict[str, tuple[int, ...]]:
    """The static shapes of one side, for the inputs that the other leaves open. The one cannot be
    run at others, and the other can be run at these."""
    return _taken({value.name: _sizes(value) for value in fixed}, opened)


def same_as_base(shapes: _Shapes, head: Sequence[ModelInput]) -> dict[str, tuple[int, ...]]:
    """Returns the shapes that the base is run at, for the inputs that the head leaves open: a
    symbol with another name in the head makes no model smaller."""
    return _taken(shapes, head)


def _taken(
    shapes: Mapping[str, tuple[int, ...] | None], head: Sequence[ModelInput]
) -> dict[str, tuple[int, ...]]:
    found = {}
    for value in head:
        shape = shapes.get(value.name)
        if shape is not None and _sizes(value) is None and takes(value, shape):
            found[value.name] = shape
    return found


def _sizes(value: ModelInput) -> tuple[int, ...] | None:
    """The sizes of a static input, None of another."""
    sizes = tuple(size for size in value.dimensions if size is not None)
    return sizes if value.is_ranked and len(sizes) == len(value.dimensions) else None
