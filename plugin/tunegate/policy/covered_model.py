"""The rules for one model that the base covers."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import msgspec

from tunegate.artifacts.changes import Effect, ModelPath, PolicyChange
from tunegate.artifacts.outlines import ModelInput
from tunegate.config import Accuracy, Config, ModelConfig, ObjectiveConfig
from tunegate.policy.judging_shapes import EntryOf, JudgingShapes, judging_shapes
from tunegate.policy.metric_commands import METRIC_KEY, merged_metric, metric_changes
from tunegate.policy.rules import ACCURACY, OBJECTIVE
from tunegate.policy.sections import merged_section, section_changes
from tunegate.policy.targets import names
from tunegate.policy.written import written

InputsOf = Callable[[ModelPath], tuple[ModelInput, ...] | None]
"""The inputs of a model, by its path in the head; None where it cannot be read."""


class CoveredModel(NamedTuple):
    """A model with the base's entry for it, and the head's where that has one."""

    path: ModelPath
    old: ModelConfig
    new: ModelConfig | None


class Asked(NamedTuple):
    """The entry that judges the model, and how it differs from the base's."""

    entry: ModelConfig
    changes: tuple[PolicyChange, ...]


def asked_of(
    model: CoveredModel,
    base: Config,
    head: Config,
    inputs_of: InputsOf,
    inputs_before: InputsOf = lambda _: None,
) -> Asked:
    """The base's shapes where they still fit, its objective and accuracy or
    stricter ones, its targets and more."""
    shapes = _shapes(model, EntryOf(base, model.old), head, (inputs_of, inputs_before))
    objective, objective_changes = _objective(model)
    accuracy, accuracy_changes = _accuracy(model)
    targets, target_changes = _targets(model, base, head)
    entry = ModelConfig(
        path=glob.escape(model.path),
        dims=shapes.dims,
        inputs=shapes.inputs,
        profiles=shapes.profiles,
        targets=targets,
        objective=objective,
        accuracy=accuracy,
    )
    told = (msgspec.structs.replace(each, model=model.path) for each in shapes.changes)
    changes = (*_coverage(model), *told, *objective_changes, *accuracy_changes, *target_changes)
    return Asked(entry, changes)


def _shapes(
    model: CoveredModel, old: EntryOf, head: Config, inputs_of: tuple[InputsOf, InputsOf]
) -> JudgingShapes:
    """Returns the judging shapes; a model with the same settings is not opened."""
    if model.new is None:
        return judging_shapes(old, None, None)
    new = EntryOf(head, model.new)
    if _said(old) == _said(new):
        return judging_shapes(old, new, None)
    after, before = inputs_of
    return judging_shapes(old, new, after(model.path), before(model.path))


def _said(side: EntryOf) -> tuple[object, ...]:
    entry = side.entry
    return side.config.dims, entry.dims, entry.inputs, entry.profiles


def _coverage(model: CoveredModel) -> Iterator[PolicyChange]:
    if model.new is None:
        yield _change(model, "path", model.old.path, "no entry matches it", "loosened")


def _objective(model: CoveredModel) -> tuple[ObjectiveConfig | None, list[PolicyChange]]:
    old, new = model.old.objective, model.new.objective if model.new else None
    if model.new is None or old == new:
        return old, []
    if old is None:
        return new, [
            _change(model, "objective", "not set", written(new), "tightened", counts="now")
        ]
    if new is None:
        return old, [_change(model, "objective", written(old), "not set", "loosened")]
    found = section_changes(old, new, OBJECTIVE, "models[].objective", model=model.path)
    return merged_section(old, new, OBJECTIVE), list(found)


def _accuracy(model: CoveredModel) -> tuple[Accuracy, list[PolicyChange]]:
    """Returns the stricter accuracy, and its changes; nothing is stricter than the same numbers."""
    old, new = model.old.accuracy, model.new.accuracy if model.new else "same"
    if model.new is None or old == new:
        return old, []
    if new == "same":
        return new, [_change(model, "accuracy", written(old), new, "tightened", counts="now")]
    if old == "same":
        return old, [_change(model, "accuracy", old, written(new), "loosened")]
    metrics = old.metric_command, new.metric_command
    found = section_changes(old, new, ACCURACY, "models[].accuracy", model=model.path)
    others = (each for each in found if each.key != METRIC_KEY)
    merged = msgspec.structs.replace(
        merged_section(old, new, ACCURACY), metric_command=merged_metric(*metrics)
    )
    return merged, [*others, *metric_changes(*metrics, model.path)]


def _targets(
    model: CoveredModel, base: Config, head: Config
) -> tuple[tuple[str, ...], list[PolicyChange]]:
    """Returns the targets that are gated, and the changes; targets gone from the file, or new in
    it, are reported once, and not for every model."""
    old = model.old.targets or names(base)
    new = (model.new.targets or names(head)) if model.new else old
    lost = [name for name in old if name not in new and name in names(head)]
    gained = [name for name in new if name not in old and name in names(base)]
    all_of_them = (*old, *(name for name in new if name not in old))
    changes = []
    if lost:
        changes.append(_change(model, "targets", written(old), written(new), "loosened"))
    elif gained:
        changes.append(
            _change(model, "targets", written(old), written(new), "tightened", counts="now")
        )
    return all_of_them, changes


def _change(
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
