"""The targets that count: the base's as the base defines them, and those that only the head has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath

import msgspec

from tunegate.artifacts.changes import Effect, ModelPath, PolicyChange
from tunegate.config import (
    Accuracy,
    Config,
    Inputs,
    MetricCommandConfig,
    ModelConfig,
    TargetConfig,
    WatchConfig,
)
from tunegate.review.globs import matches
from tunegate.review.model_settings import values_of
from tunegate.review.rules import METRIC_COMMAND, TARGET, merged_section, section_changes, written


def merged_targets(base: Config, head: Config) -> tuple[TargetConfig, ...]:
    """The base's first, in its order."""
    theirs = {target.name: target for target in head.targets}
    kept = [merged_section(ours, theirs.get(ours.name, ours), TARGET) for ours in base.targets]
    known = names(base)
    return (*kept, *(target for target in head.targets if target.name not in known))


def target_changes(base: Config, head: Config) -> Iterator[PolicyChange]:
    """Targets that are gone, new, or defined otherwise."""
    ours = {target.name: target for target in base.targets}
    theirs = {target.name: target for target in head.targets}
    for name, target in ours.items():
        if name in theirs:
            yield from section_changes(target, theirs[name], TARGET, "targets[]", target=name)
        else:
            yield PolicyChange(
                key="targets[].name",
                old=name,
                new="removed",
                effect="loosened",
                counts="once merged",
                target=name,
            )
    unmerged = _on_new_runners(base, head)
    for name, target in theirs.items():
        if name in unmerged:
            yield PolicyChange(
                key="targets[].runner",
                old="not set",
                new=written(list(target.runner)),
                effect="changed",
                counts="once merged",
                target=name,
            )
        elif name not in ours:
            yield PolicyChange(
                key="targets[].name",
                old="not set",
                new=name,
                effect="tightened",
                counts="now",
                target=name,
            )


def on_known_runners(base: Config, head: Config) -> Config:
    """Returns the head's configuration without new targets on runners that no target of the base
    has. Labels choose the machine that a job of the matrix is sent to, such as one with secrets. A
    model for such targets alone is gated on those that its entry had."""
    unmerged = _on_new_runners(base, head)
    if not unmerged:
        return head
    before = {entry.path: entry.targets for entry in base.models}
    models = tuple(
        msgspec.structs.replace(
            entry,
            targets=tuple(name for name in entry.targets if name not in unmerged)
            or before.get(entry.path, ()),
        )
        for entry in head.models
    )
    targets = tuple(target for target in head.targets if target.name not in unmerged)
    return msgspec.structs.replace(head, models=models, targets=targets)


def _on_new_runners(base: Config, head: Config) -> frozenset[str]:
    ours, known = {frozenset(target.runner) for target in base.targets}, names(base)
    return frozenset(
        target.name
        for target in head.targets
        if target.name not in known and frozenset(target.runner) not in ours
    )


def names(config: Config) -> tuple[str, ...]:
    return tuple(target.name for target in config.targets)


# The choice of the `metric-command` that runs: the base's alone. A pull request chooses nothing
# that runs.

METRIC_KEY = "models[].accuracy.metric-command"
_Metric = MetricCommandConfig | None


def metric_of(accuracy: Accuracy) -> _Metric:
    return None if accuracy == "same" else accuracy.metric_command


def merged_metric(old: _Metric, new: _Metric) -> _Metric:
    """The base's command; of two bounds on the same command the stricter."""
    if old is None or new is None or old.run != new.run:
        return old
    return merged_section(old, new, METRIC_COMMAND)


def metric_changes(old: _Metric, new: _Metric, model: ModelPath) -> Iterator[PolicyChange]:
    if old is not None and new is not None and old.run == new.run:
        yield from section_changes(old, new, METRIC_COMMAND, METRIC_KEY, model=model)
    elif old != new:
        yield PolicyChange(
            key=METRIC_KEY,
            old=written(old),
            new=written(new),
            effect="loosened" if new is None else "changed",
            counts="once merged",
            model=model,
        )


def without_commands(models: Iterable[ModelConfig]) -> tuple[ModelConfig, ...]:
    """Entries of a head that no base judges: those with a command have float32 alone, since its
    bound is not known to be kept."""
    return tuple(
        msgspec.structs.replace(each, accuracy="same") if metric_of(each.accuracy) else each
        for each in models
    )


def new_commands(models: Iterable[ModelConfig]) -> Iterator[PolicyChange]:
    """Yields the policy changes for these entries' commands, which nobody has merged."""
    for each in models:
        metric = metric_of(each.accuracy)
        if metric is not None:
            yield from metric_changes(None, metric, each.path)


# Files of values that lie on the runner: who may name them.


def newly_outside(base: Config, judging: Config) -> tuple[str, ...]:
    """Returns a line for each absolute path that the base's configuration does not have: a change,
    of a fork for one, must not choose what is read on the runner."""
    known = {file for _, file in _outside(base)}
    return tuple(
        f"models: {where}: {file} lies outside of the repository, and only a configuration that is "
        "merged may name it. Commit the file, or merge the configuration first."
        for where, file in _outside(judging)
        if file not in known
    )


def _outside(config: Config) -> Iterator[tuple[str, str]]:
    for entry in config.models:
        yield from _named(entry.inputs, entry.path)
        for name, profile in entry.profiles.items():
            yield from _named(profile.inputs, f"{entry.path}: profiles.{name}")


def _named(inputs: Inputs, where: str) -> Iterator[tuple[str, str]]:
    for name, values in values_of(inputs).items():
        for file in values.files:
            if PurePath(file).is_absolute():
                yield f"{where}: inputs.{name}.values", file


# The watched lock files: those of the base, and what the head adds. Where packages come from is
# the base's to say: an index of the head's counts once it is merged.


def merged_watch(base: WatchConfig, head: WatchConfig) -> WatchConfig:
    """More files are stricter."""
    return msgspec.structs.replace(base, files=tuple(dict.fromkeys((*base.files, *head.files))))


def watch_changes(base: WatchConfig, head: WatchConfig) -> Iterator[PolicyChange]:
    """A change for each glob that is gone or new, and one for other indexes."""
    for glob in base.files:
        if glob not in head.files:
            yield _change("files", glob, "removed", "loosened")
    for glob in head.files:
        if glob not in base.files:
            yield _change("files", "not set", glob, "tightened")
    if base.indexes != head.indexes:
        old, new = (written(list(each.indexes)) for each in (base, head))
        yield _change("indexes", old, new, "changed")


def unmatched_globs(watch: WatchConfig, paths: Iterable[str]) -> Iterator[str]:
    """A line for each glob that watches nothing, as none of the paths matches it."""
    known = [*paths]
    for glob in watch.files:
        if not any(matches(glob, path) for path in known):
            yield f"watch.files: {glob} matches no committed file, so it watches nothing"


def _change(key: str, old: str, new: str, effect: Effect) -> PolicyChange:
    counts = "now" if effect == "tightened" else "once merged"
    return PolicyChange(
        key=f"watch.{key}",
        old=old,
        new=new,
        effect=effect,
        counts=counts,  # type: ignore[arg-type]
    )
