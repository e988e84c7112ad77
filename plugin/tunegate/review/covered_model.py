"""The rules for one model that the base covers."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

import msgspec

from tunegate.artifacts.changes import Effect, ModelInput, ModelPath, PolicyChange
from tunegate.config import (
    Accuracy,
    Config,
    InputConfig,
    Inputs,
    ModelConfig,
    ObjectiveConfig,
    ProfileConfig,
    ValuesConfig,
)
from tunegate.review.base_rules import METRIC_KEY, merged_metric, metric_changes, names
from tunegate.review.globs import literal
from tunegate.review.input_shapes import ResolvedShapes, ShapeLevel, resolve_shapes, takes
from tunegate.review.model_settings import entry_levels, entry_shapes, entry_values
from tunegate.review.rules import ACCURACY, OBJECTIVE, merged_section, section_changes, yaml_text

InputsOf = Callable[[ModelPath], tuple[ModelInput, ...] | None]
"""Returns the inputs of a model by its path in the head, None if it cannot be read."""


class CoveredModel(NamedTuple):
    """A model with the base's entry for it, and the head's if it has one."""

    path: ModelPath
    old: ModelConfig
    new: ModelConfig | None


class JudgingEntry(NamedTuple):
    """The entry that judges the model, and its differences from the base's."""

    entry: ModelConfig
    changes: tuple[PolicyChange, ...]


def judging_entry(
    model: CoveredModel,
    base: Config,
    head: Config,
    inputs_of: InputsOf,
    inputs_before: InputsOf = lambda _: None,
) -> JudgingEntry:
    """Returns the entry that judges: the base's shapes if they still fit, its objective and
    accuracy or stricter ones, its targets and more."""
    shapes = _merge_shapes(model, EntryOf(base, model.old), head, (inputs_of, inputs_before))
    objective, objective_changes = _objective(model)
    accuracy, accuracy_changes = _accuracy(model)
    targets, target_changes = _targets(model, base, head)
    entry = ModelConfig(
        path=literal(model.path),
        dims=shapes.dims,
        inputs=shapes.inputs,
        profiles=shapes.profiles,
        targets=targets,
        objective=objective,
        accuracy=accuracy,
    )
    shape_changes = (msgspec.structs.replace(change, model=model.path) for change in shapes.changes)
    changes = (
        *_coverage(model),
        *shape_changes,
        *objective_changes,
        *accuracy_changes,
        *target_changes,
    )
    return JudgingEntry(entry, changes)


def _merge_shapes(
    model: CoveredModel, old: EntryOf, head: Config, inputs_of: tuple[InputsOf, InputsOf]
) -> JudgingShapes:
    """Returns the judging shapes. A model with unchanged settings is not opened."""
    if model.new is None:
        return judging_shapes(old, None, None)
    new = EntryOf(head, model.new)
    if _shape_settings(old) == _shape_settings(new):
        return judging_shapes(old, new, None)
    after, before = inputs_of
    return judging_shapes(old, new, after(model.path), before(model.path))


def _shape_settings(side: EntryOf) -> tuple[object, ...]:
    entry = side.entry
    return side.config.dims, entry.dims, entry.inputs, entry.profiles


def _coverage(model: CoveredModel) -> Iterator[PolicyChange]:
    if model.new is None:
        yield _key_change(model, "path", model.old.path, "no entry matches it", "loosened")


def _objective(model: CoveredModel) -> tuple[ObjectiveConfig | None, list[PolicyChange]]:
    old, new = model.old.objective, model.new.objective if model.new else None
    if model.new is None or old == new:
        return old, []
    if old is None:
        return new, [
            _key_change(model, "objective", "not set", yaml_text(new), "tightened", counts="now")
        ]
    if new is None:
        return old, [_key_change(model, "objective", yaml_text(old), "not set", "loosened")]
    changes = section_changes(old, new, OBJECTIVE, "models[].objective", model=model.path)
    return merged_section(old, new, OBJECTIVE), list(changes)


def _accuracy(model: CoveredModel) -> tuple[Accuracy, list[PolicyChange]]:
    """Returns the stricter accuracy, and its changes. `same` is the strictest."""
    old, new = model.old.accuracy, model.new.accuracy if model.new else "same"
    if model.new is None or old == new:
        return old, []
    if new == "same":
        return new, [_key_change(model, "accuracy", yaml_text(old), new, "tightened", counts="now")]
    if old == "same":
        return old, [_key_change(model, "accuracy", old, yaml_text(new), "loosened")]
    metrics = old.metric_command, new.metric_command
    differences = section_changes(old, new, ACCURACY, "models[].accuracy", model=model.path)
    others = (difference for difference in differences if difference.key != METRIC_KEY)
    accuracy = msgspec.structs.replace(
        merged_section(old, new, ACCURACY), metric_command=merged_metric(*metrics)
    )
    return accuracy, [*others, *metric_changes(*metrics, model.path)]


def _targets(
    model: CoveredModel, base: Config, head: Config
) -> tuple[tuple[str, ...], list[PolicyChange]]:
    """Returns the gated targets and their changes. Targets that the whole file lost or gained are
    reported once, not for every model."""
    old = model.old.targets or names(base)
    new = (model.new.targets or names(head)) if model.new else old
    removed_targets = [name for name in old if name not in new and name in names(head)]
    new_targets = [name for name in new if name not in old and name in names(base)]
    all_of_them = (*old, *(name for name in new if name not in old))
    changes = []
    if removed_targets:
        changes.append(_key_change(model, "targets", yaml_text(old), yaml_text(new), "loosened"))
    elif new_targets:
        changes.append(
            _key_change(model, "targets", yaml_text(old), yaml_text(new), "tightened", counts="now")
        )
    return all_of_them, changes


def _key_change(
    model: CoveredModel,
    key: str,
    old: str,
    new: str,
    effect: Effect,
    *,
    counts: Literal["now", "once merged"] = "once merged",
) -> PolicyChange:
    return PolicyChange(
        key=f"models[].{key}", old=old, new=new, effect=effect, counts=counts, model=model.path
    )


# The shapes that judge a covered model, by profile: the base's while they fit.


class EntryOf(NamedTuple):
    """The entry of a model, and its configuration."""

    config: Config
    entry: ModelConfig


class JudgingShapes(NamedTuple):
    """The keys of the judging entry, and its differences from the base's. The changes name no
    model."""

    dims: dict[str, int]
    inputs: Inputs
    profiles: dict[str, ProfileConfig]
    changes: tuple[PolicyChange, ...]


class _Profile(NamedTuple):
    """A profile as one side sets it. `own_shapes` are those that it names. `dims` are kept only if
    the model could not be opened."""

    resolution: ResolvedShapes
    values: Mapping[str, ValuesConfig]
    dims: Mapping[str, int]
    own_shapes: Mapping[str, tuple[int, ...]]

    @property
    def work_key(self) -> tuple[object, ...]:
        """A value that is equal for two profiles of the same work."""
        misfit = self.own_shapes if self.resolution.problems else {}
        return self.resolution.shapes, self.values, self.dims, misfit

    @property
    def fits(self) -> bool:
        return not self.resolution.problems


def judging_shapes(
    old: EntryOf,
    new: EntryOf | None,
    inputs: Sequence[ModelInput] | None,
    inputs_before: Sequence[ModelInput] | None = None,
) -> JudgingShapes:
    """Returns the judging shapes. `inputs` are the head model's, `inputs_before` the base's, None
    if unreadable. Without a new entry everything is the base's."""
    before = _profiles(old, inputs, inputs_before)
    if new is None:
        return _as_entry(before, ())
    after = _profiles(new, inputs)
    new_names = _profiles_with_new_names(before, after)
    key = "models[].dims" if old.entry.inputs == new.entry.inputs else "models[].inputs"
    changes = [*_changes(before, after, new_names, key)]
    is_said = all(profile.fits for profile in after.values())
    if not changes and not (is_said and _leaves_open(new, inputs_before)):
        return JudgingShapes(new.entry.dims, new.entry.inputs, new.entry.profiles, ())
    still_fitting = {
        name: profile for name, profile in before.items() if name not in new_names and profile.fits
    }
    return _as_entry({**after, **still_fitting}, tuple(changes))


def _leaves_open(side: EntryOf, inputs: Sequence[ModelInput] | None) -> bool:
    """Returns whether an entry lacks sizes for these inputs. The head's entry does for a base whose
    symbols have other names."""
    profiles = side.entry.profiles or ("",)
    levels = (entry_levels(side.config, side.entry, name) for name in profiles)
    return inputs is not None and any(entry_shapes(level, inputs).problems for level in levels)


def _profiles(
    side: EntryOf,
    inputs: Sequence[ModelInput] | None,
    inputs_before: Sequence[ModelInput] | None = None,
) -> dict[str, _Profile]:
    profiles = {}
    names = (
        NamesInHead() if not (inputs and inputs_before) else names_in_head(inputs_before, inputs)
    )
    for name in side.entry.profiles or ("",):
        levels = entry_levels(side.config, side.entry, name)
        dims = {symbol: size for level in levels for symbol, size in level.dims.items()}
        profiles[name] = _Profile(
            resolution=_shapes(levels, inputs, inputs_before, names),
            values=names.of(entry_values(side.entry, name)),
            dims=dims if inputs is None else {},
            own_shapes=names.of(entry_shapes(levels, None).shapes),
        )
    return profiles


def _shapes(
    levels: Sequence[ShapeLevel],
    inputs: Sequence[ModelInput] | None,
    inputs_before: Sequence[ModelInput] | None,
    names: NamesInHead,
) -> ResolvedShapes:
    """Returns the shapes for these inputs: those that the model had before, by input name, wherever
    the new inputs take them. A renamed input or dimension makes no model smaller, whether the name
    is new, a sum of others, or swapped with another."""
    shapes = entry_shapes([names.level(level) for level in levels], inputs)
    before = None if inputs_before is None else entry_shapes(levels, inputs_before)
    if inputs is None or before is None or before.problems:
        return shapes
    shapes_before = names.of(before.shapes)
    if shapes.problems:
        again = resolve_shapes(inputs, [ShapeLevel(shapes=shapes_before)])
        return shapes if again.problems else again
    same = {
        value.name: shape
        for value in inputs
        if (shape := shapes_before.get(value.name)) is not None and takes(value, shape)
    }
    return msgspec.structs.replace(shapes, shapes={**shapes.shapes, **same})


def _profiles_with_new_names(
    before: Mapping[str, _Profile], after: Mapping[str, _Profile]
) -> frozenset[str]:
    """Returns the profiles of the base that the head has under another name."""
    new = [profile.work_key for name, profile in after.items() if name not in before]
    return frozenset(
        name
        for name, profile in before.items()
        if name not in after and profile.fits and profile.work_key in new
    )


def _changes(
    before: Mapping[str, _Profile],
    after: Mapping[str, _Profile],
    new_names: frozenset[str],
    key: str,
) -> Iterator[PolicyChange]:
    work_before = [before[name].work_key for name in new_names]
    for name, profile in before.items():
        if name in after and profile.work_key != after[name].work_key:
            place = f"models[].profiles.{name}" if name else key
            old, new = _first_difference(profile, after[name])
            yield _shape_change(place, old, new, "changed", is_pending=profile.fits)
        elif name not in after and name not in new_names:
            yield _shape_change(
                "models[].profiles",
                _profile_title(name),
                "removed",
                "loosened",
                is_pending=profile.fits,
            )
    for name, profile in after.items():
        if name not in before and profile.work_key not in work_before:
            yield _shape_change(
                "models[].profiles", "not set", _profile_title(name), "tightened", is_pending=False
            )


def _shape_change(
    key: str, old: str, new: str, effect: Effect, *, is_pending: bool = True
) -> PolicyChange:
    counts = "once merged" if is_pending else "now"
    return PolicyChange(key=key, old=old, new=new, effect=effect, counts=counts)  # type: ignore[arg-type]


def _first_difference(old: _Profile, new: _Profile) -> tuple[str, str]:
    """Returns the coarsest difference of two profiles."""
    for one, other in zip(old.work_key, new.work_key, strict=True):
        if one != other:
            return yaml_text(one), yaml_text(other)
    return "", ""


def _profile_title(name: str) -> str:
    return name or "without a profile"


def _as_entry(profiles: Mapping[str, _Profile], changes: tuple[PolicyChange, ...]) -> JudgingShapes:
    """Returns the keys of an entry that asks for these profiles."""
    shapes_by_profile = {
        name: ProfileConfig(dims=dict(each.dims), inputs=_inputs(each))
        for name, each in profiles.items()
    }
    only = shapes_by_profile.get("") if len(shapes_by_profile) == 1 else None
    if only is not None:
        return JudgingShapes(only.dims, only.inputs, {}, changes)
    return JudgingShapes({}, {}, shapes_by_profile, changes)


def _inputs(profile: _Profile) -> dict[str, tuple[int, ...] | InputConfig]:
    shapes, values = profile.resolution.shapes, profile.values
    inputs: dict[str, tuple[int, ...] | InputConfig] = dict(shapes)
    for name, rule in values.items():
        inputs[name] = InputConfig(shape=shapes.get(name), values=rule)
    return inputs


# Renamed inputs keep the base's settings under their new names.

_PerInput = TypeVar("_PerInput")


class NamesInHead(msgspec.Struct, frozen=True):
    """The names of the base's inputs in the head: `renamed`, `lost` or unchanged. `new` are inputs
    of the head that had another name or did not exist."""

    renamed: Mapping[str, str] = {}
    lost: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()

    def of(self, by_input: Mapping[str, _PerInput]) -> dict[str, _PerInput]:
        """Returns the values for the base's inputs under the head's names."""
        return {
            self.renamed.get(name, name): each
            for name, each in by_input.items()
            if name not in self.lost
        }

    def level(self, level: ShapeLevel) -> ShapeLevel:
        return msgspec.structs.replace(level, shapes=self.of(level.shapes))

    def inputs(self, before: Sequence[ModelInput]) -> tuple[ModelInput, ...]:
        """Returns the inputs of the base that the head still has."""
        return tuple(
            self.of({each.name: _rename_input(each, self.renamed) for each in before}).values()
        )

    @property
    def gone_names(self) -> frozenset[str]:
        """The names in the base that mean no input, or another one, in the head."""
        return self.lost | self.renamed.keys()

    @property
    def backwards(self) -> NamesInHead:
        """Returns the names of the head's inputs in the base, as if the base were later."""
        old_names = {now: was for was, now in self.renamed.items()}
        return NamesInHead(old_names, self.new - old_names.keys(), self.gone_names)


def names_in_head(
    before: Sequence[ModelInput] | None, after: Sequence[ModelInput] | None
) -> NamesInHead:
    """Matches inputs by name, then the remaining ones in order if they have as many dimensions: a
    new name makes no model smaller. A model that cannot be read has none."""
    if before is None or after is None:
        return NamesInHead()
    ranks = {each.name: _rank(each) for each in before}
    same_names = {each.name for each in after if ranks.get(each.name) == _rank(each)}
    new_names = _match_inputs(
        [each for each in before if each.name not in same_names],
        [each for each in after if each.name not in same_names],
    )
    return NamesInHead(
        new_names,
        lost=frozenset(ranks.keys() - same_names - new_names.keys()),
        new=frozenset({each.name for each in after} - same_names),
    )


def _match_inputs(before: Sequence[ModelInput], after: Sequence[ModelInput]) -> dict[str, str]:
    """Matches inputs of the same type first, then those of the same rank."""
    new_names = dict[str, str]()
    for kind_of in (lambda value: (value.dtype, _rank(value)), _rank):
        matched_names = {*new_names.values()}
        unmatched_names = defaultdict[object, deque[str]](deque)
        for value in after:
            if value.name not in matched_names:
                unmatched_names[kind_of(value)].append(value.name)
        for was in before:
            if was.name not in new_names and (alike := unmatched_names[kind_of(was)]):
                new_names[was.name] = alike.popleft()
    return new_names


def _rank(value: ModelInput) -> int | None:
    return len(value.dimensions) if value.is_ranked else None


def _rename_input(value: ModelInput, names: Mapping[str, str]) -> ModelInput:
    return msgspec.structs.replace(value, name=names.get(value.name, value.name))
