"""Settings that only the base's configuration has: of inputs that its model has, and the head's has
not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from tunegate.artifacts.changes import ModelChange
from tunegate.artifacts.model_names import gated_name, profile_of
from tunegate.artifacts.outlines import ModelInput
from tunegate.config import Config, ValuesConfig
from tunegate.input_shapes import ResolvedShapes
from tunegate.selection import profiles_for, shapes_for, values_for


class SaidOfLost(NamedTuple):
    """The shapes and values of inputs, by their names in the base."""

    shapes: Mapping[str, tuple[int, ...]] = {}
    values: Mapping[str, ValuesConfig] = {}


def said_of_lost(
    config: Config | None,
    change: ModelChange,
    inputs: Sequence[ModelInput],
    lost: Collection[str],
    wanted: ResolvedShapes,
) -> SaidOfLost:
    """`config` is the base's, `inputs` are those of the base's model, and `wanted` the shapes of
    the head's. What is gated under a new name is looked for by its shapes."""
    if config is None or change.base is None or not lost:
        return SaidOfLost()
    found = {
        name: shapes_for(config, name, inputs).shapes
        for name in profiles_for(config, change.base.path)
    }
    same = gated_name(change.base.path, profile_of(change.path))
    alike = (name for name in found if _agree(found[name], wanted.shapes, lost))
    was = same if same in found else next(alike, None)
    if was is None:
        return SaidOfLost()
    values = values_for(config, was)
    return SaidOfLost(
        shapes={name: shape for name, shape in found[was].items() if name in lost},
        values={name: each for name, each in values.items() if name in lost},
    )


def _agree(
    one: Mapping[str, tuple[int, ...]], other: Mapping[str, tuple[int, ...]], lost: Collection[str]
) -> bool:
    """Returns whether both have the same shapes for the inputs that are not lost."""
    return all(other.get(name, shape) == shape for name, shape in one.items() if name not in lost)
