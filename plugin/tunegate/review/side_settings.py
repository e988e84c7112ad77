"""The sizes and values at which each side of a changed model runs: both do the same work."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tunegate.artifacts import changes
from tunegate.config import Config, ValuesConfig
from tunegate.ports import Shapes
from tunegate.review.covered_model import names_in_head
from tunegate.review.input_shapes import ResolvedShapes, ShapeLevel, takes
from tunegate.review.model_settings import (
    entry_shapes,
    profiles_for,
    shape_levels,
    shapes_for,
    values_for,
)


class SideSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one side. `configured` are the shapes by the configuration, with its
    problems. `shapes` are those that the side runs at, `resized` the ones that are the other
    side's. `former` maps inputs to their names at the base, if they differ. `of_base` are the
    base's shapes by the head's names."""

    configured: ResolvedShapes
    shapes: Shapes
    resized: Shapes = {}
    values: Mapping[str, ValuesConfig] = {}
    former: Mapping[str, str] = {}
    of_base: Shapes = {}


def settings_of_sides(
    config: Config,
    before: Config | None,
    change: changes.ModelChange,
    inputs: Mapping[changes.Side, Sequence[changes.ModelInput] | None],
) -> dict[changes.Side, SideSettings]:
    """Returns the settings of the sides whose `inputs` are given, None for an unreadable model.
    `before` is the base's configuration."""
    base, head = (inputs.get(side) or () for side in changes.SIDES)
    names = names_in_head(inputs.get("base"), inputs.get("head"))
    base_settings = settings_of_lost(
        before, change, base, names.gone_names, shapes_for(config, change.path, head)
    )
    levels_of_model, values = shape_levels(config, change.path), values_for(config, change.path)
    settings: dict[changes.Side, SideSettings] = {}
    if "base" in inputs:
        # A base with open sizes runs at those of a static head, and has its own settings for
        # inputs that only it has.
        same = static_sizes(names.backwards.inputs(head), base)
        not_of_it = names.new | static_sizes(names.inputs(base), head).keys()
        levels = (
            ShapeLevel(where="base", shapes=base_settings.shapes),
            *(_without(level, not_of_it) for level in levels_of_model),
        )
        settings["base"] = msgspec.structs.replace(
            _shapes_of_side(levels, inputs["base"], same), values={**base_settings.values, **values}
        )
    if "head" in inputs:
        # A head that leaves sizes open runs at the base's, wherever it takes them.
        same, of_base = static_sizes(names.inputs(base), head), dict[str, tuple[int, ...]]()
        if "base" in settings and not settings["base"].configured.problems:
            of_base = names.of(settings["base"].shapes)
            same |= same_as_base(of_base, head)
        settings["head"] = msgspec.structs.replace(
            _shapes_of_side(levels_of_model, inputs["head"], same),
            values=values,
            former=names.backwards.renamed,
            of_base=of_base,
        )
    return settings


def _shapes_of_side(
    levels: Sequence[ShapeLevel], inputs: Sequence[changes.ModelInput] | None, same: Shapes
) -> SideSettings:
    """Returns a side's shapes by these levels; `same` are the other side's sizes, which it runs
    at."""
    own = entry_shapes(levels, inputs)
    if not same or own.problems:
        return SideSettings(configured=own, shapes=own.shapes)
    shapes = entry_shapes((*levels, ShapeLevel(where="both", shapes=same)), inputs).shapes
    from_other = {name: shape for name, shape in shapes.items() if own.shapes.get(name) != shape}
    return SideSettings(configured=own, shapes=shapes, resized=from_other)


def _without(level: ShapeLevel, names: Collection[str]) -> ShapeLevel:
    shapes = {name: shape for name, shape in level.shapes.items() if name not in names}
    return msgspec.structs.replace(level, shapes=shapes)


# Settings that only the base's configuration has: for inputs that its model has and the head's has
# not.


class LostSettings(NamedTuple):
    """The base's shapes and values for lost inputs, by their names in the base."""

    shapes: Mapping[str, tuple[int, ...]] = {}
    values: Mapping[str, ValuesConfig] = {}


def settings_of_lost(
    config: Config | None,
    change: changes.ModelChange,
    inputs: Sequence[changes.ModelInput],
    keys: Collection[str],
    head_shapes: ResolvedShapes,
) -> LostSettings:
    """Returns the base's settings for inputs that the head lost. `config` is the base's, `inputs`
    its model's, `head_shapes` the head's shapes. A model gated under a new name is found by its
    shapes."""
    if config is None or change.base is None or not keys:
        return LostSettings()
    shapes_of = {
        name: shapes_for(config, name, inputs).shapes
        for name in profiles_for(config, change.base.path)
    }
    same = changes.gated_name(change.base.path, changes.profile_of(change.path))
    alike = (name for name, shapes in shapes_of.items() if _agree(shapes, head_shapes.shapes, keys))
    name = same if same in shapes_of else next(alike, None)
    if name is None:
        return LostSettings()
    return LostSettings(
        shapes={key: shape for key, shape in shapes_of[name].items() if key in keys},
        values={key: value for key, value in values_for(config, name).items() if key in keys},
    )


def _agree(first: Shapes, other: Shapes, keys: Collection[str]) -> bool:
    """Returns whether both have the same shapes for the inputs that are not lost."""
    return all(other.get(name, shape) == shape for name, shape in first.items() if name not in keys)


# The sizes at which base and head do the same work.


def static_sizes(
    fixed: Sequence[changes.ModelInput], open_inputs: Sequence[changes.ModelInput]
) -> dict[str, tuple[int, ...]]:
    """Returns the static shapes of one side, for the inputs that the other leaves open. The one
    cannot be run at others, and the other can be run at these."""
    return same_as_base({value.name: _sizes(value) for value in fixed}, open_inputs)


def same_as_base(
    shapes: Mapping[str, tuple[int, ...] | None], head: Sequence[changes.ModelInput]
) -> dict[str, tuple[int, ...]]:
    """Returns those of the base's shapes that the head leaves open and takes: renaming a symbol
    must not make the model smaller."""
    return {
        value.name: shape
        for value in head
        if (shape := shapes.get(value.name)) is not None
        and _sizes(value) is None
        and takes(value, shape)
    }


def _sizes(value: changes.ModelInput) -> tuple[int, ...] | None:
    """Returns the sizes of a static input, None for another."""
    sizes = tuple(size for size in value.dimensions if size is not None)
    return sizes if value.is_ranked and len(sizes) == len(value.dimensions) else None
