"""The shapes that judge a covered model, for each of its profiles: the base's while they fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tunegate.artifacts.changes import Effect, PolicyChange
from tunegate.artifacts.outlines import ModelInput
from tunegate.config import Config, InputConfig, Inputs, ModelConfig, ProfileConfig, ValuesConfig
from tunegate.input_shapes import ResolvedShapes, ShapeLevel, resolve_shapes, takes
from tunegate.policy.renamed_inputs import NamesInHead, names_in_head
from tunegate.policy.written import written
from tunegate.selection import entry_levels, entry_shapes, entry_values


class EntryOf(NamedTuple):
    """The entry of a model, and the configuration that it stands in."""

    config: Config
    entry: ModelConfig


class JudgingShapes(NamedTuple):
    """The keys of the entry that judges, and how they differ from the base's. The changes name no
    model."""

    dims: dict[str, int]
    inputs: Inputs
    profiles: dict[str, ProfileConfig]
    changes: tuple[PolicyChange, ...]


class _Profile(NamedTuple):
    """A profile as one side sets it. `given` is what it says of shapes; `dims` are only kept where
    nobody could look into the model."""

    found: ResolvedShapes
    values: Mapping[str, ValuesConfig]
    dims: Mapping[str, int]
    given: Mapping[str, tuple[int, ...]]

    @property
    def asked(self) -> tuple[object, ...]:
        """Equal for two profiles that are the same work."""
        misfit = self.given if self.found.problems else {}
        return self.found.shapes, self.values, self.dims, misfit

    @property
    def fits(self) -> bool:
        return not self.found.problems


def judging_shapes(
    old: EntryOf,
    new: EntryOf | None,
    inputs: Sequence[ModelInput] | None,
    inputs_before: Sequence[ModelInput] | None = None,
) -> JudgingShapes:
    """`inputs` are those of the head's model, None where it cannot be read, `inputs_before` the
    base's. Without a new entry everything is the base's."""
    before = _profiles(old, inputs, inputs_before)
    if new is None:
        return _as_entry(before, ())
    after = _profiles(new, inputs)
    renamed = _renamed(before, after)
    changes = [*_changes(before, after, renamed, _key(old.entry, new.entry))]
    is_said = all(profile.fits for profile in after.values())
    if not changes and not (is_said and _leaves_open(new, inputs_before)):
        return JudgingShapes(new.entry.dims, new.entry.inputs, new.entry.profiles, ())
    kept = {
        name: profile for name, profile in before.items() if name not in renamed and profile.fits
    }
    return _as_entry({**after, **kept}, tuple(changes))


def _leaves_open(side: EntryOf, inputs: Sequence[ModelInput] | None) -> bool:
    """Returns whether an entry lacks sizes of a model with these inputs, as that of the head does
    for a base whose symbols have other names."""
    profiles = side.entry.profiles or ("",)
    levels = (entry_levels(side.config, side.entry, name) for name in profiles)
    return inputs is not None and any(entry_shapes(each, inputs).problems for each in levels)


def _profiles(
    side: EntryOf,
    inputs: Sequence[ModelInput] | None,
    inputs_before: Sequence[ModelInput] | None = None,
) -> dict[str, _Profile]:
    found = {}
    names = (
        NamesInHead() if not (inputs and inputs_before) else names_in_head(inputs_before, inputs)
    )
    for name in side.entry.profiles or ("",):
        levels = entry_levels(side.config, side.entry, name)
        dims = {symbol: size for level in levels for symbol, size in level.dims.items()}
        found[name] = _Profile(
            found=_shapes(levels, inputs, inputs_before, names),
            values=names.of(entry_values(side.entry, name)),
            dims=dims if inputs is None else {},
            given=names.of(entry_shapes(levels, None).shapes),
        )
    return found


def _shapes(
    levels: Sequence[ShapeLevel],
    inputs: Sequence[ModelInput] | None,
    inputs_before: Sequence[ModelInput] | None,
    names: NamesInHead,
) -> ResolvedShapes:
    """The shapes for these inputs: those that the model had before, by the names of its inputs,
    wherever these take them. Another name of an input or a dimension makes no model smaller:
    neither a new one, nor a sum of others, nor two that change their places."""
    found = entry_shapes([names.level(each) for each in levels], inputs)
    before = None if inputs_before is None else entry_shapes(levels, inputs_before)
    if inputs is None or before is None or before.problems:
        return found
    known = names.of(before.shapes)
    if found.problems:
        again = resolve_shapes(inputs, [ShapeLevel(shapes=known)])
        return found if again.problems else again
    same = {
        value.name: shape
        for value in inputs
        if (shape := known.get(value.name)) is not None and takes(value, shape)
    }
    return msgspec.structs.replace(found, shapes={**found.shapes, **same})


def _renamed(before: Mapping[str, _Profile], after: Mapping[str, _Profile]) -> frozenset[str]:
    """Profiles of the base that the head calls otherwise."""
    new = [profile.asked for name, profile in after.items() if name not in before]
    return frozenset(
        name
        for name, profile in before.items()
        if name not in after and profile.fits and profile.asked in new
    )


def _changes(
    before: Mapping[str, _Profile],
    after: Mapping[str, _Profile],
    renamed: frozenset[str],
    key: str,
) -> Iterator[PolicyChange]:
    known = [before[name].asked for name in renamed]
    for name, profile in before.items():
        if name in after and profile.asked != after[name].asked:
            place = f"models[].profiles.{name}" if name else key
            old, new = _told(profile, after[name])
            yield _change(place, old, new, "changed", is_pending=profile.fits)
        elif name not in after and name not in renamed:
            yield _change(
                "models[].profiles",
                _titled(name),
                "removed",
                "loosened",
                is_pending=profile.fits,
            )
    for name, profile in after.items():
        if name not in before and profile.asked not in known:
            yield _change(
                "models[].profiles", "not set", _titled(name), "tightened", is_pending=False
            )


def _change(
    key: str, old: str, new: str, effect: Effect, *, is_pending: bool = True
) -> PolicyChange:
    counts = "once merged" if is_pending else "now"
    return PolicyChange(key=key, old=old, new=new, effect=effect, counts=counts)  # type: ignore[arg-type]


def _key(old: ModelConfig, new: ModelConfig) -> str:
    return "models[].inputs" if old.inputs != new.inputs else "models[].dims"


def _told(old: _Profile, new: _Profile) -> tuple[str, str]:
    """Returns the difference, the coarsest first."""
    for one, other in zip(old.asked, new.asked, strict=True):
        if one != other:
            return written(one), written(other)
    return "", ""


def _titled(name: str) -> str:
    return name or "without a profile"


def _as_entry(profiles: Mapping[str, _Profile], changes: tuple[PolicyChange, ...]) -> JudgingShapes:
    """The keys of an entry that asks for these profiles, without what stands around it."""
    asked = {
        name: ProfileConfig(dims=dict(each.dims), inputs=_inputs(each))
        for name, each in profiles.items()
    }
    only = asked.get("") if len(asked) == 1 else None
    if only is not None:
        return JudgingShapes(only.dims, only.inputs, {}, changes)
    return JudgingShapes({}, {}, asked, changes)


def _inputs(profile: _Profile) -> dict[str, tuple[int, ...] | InputConfig]:
    shapes, values = profile.found.shapes, profile.values
    found: dict[str, tuple[int, ...] | InputConfig] = dict(shapes)
    for name, given in values.items():
        found[name] = InputConfig(shape=shapes.get(name), values=given)
    return found
