"""The targets that count: the base's as the base defines them, and those that only the head has."""

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
from tunegate.review.model_settings import values_of
from tunegate.review.rules import METRIC_COMMAND, TARGET, merged_section, section_changes, yaml_text


def merged_targets(base: Config, head: Config) -> tuple[TargetConfig, ...]:
    """Returns the base's targets in its order, then those of the head alone, as far as the base
    limits them."""
    theirs = {target.name: target for target in head.targets}
    of_base = [
        merged_section(_with_price(ours, other, base), other, TARGET)
        for ours in base.targets
        for other in [theirs.get(ours.name, ours)]
    ]
    base_names = names(base)
    new = (target for target in head.targets if target.name not in base_names)
    return (*of_base, *(_within_limits(target, base) for target in new))


def _with_price(ours: TargetConfig, theirs: TargetConfig, base: Config) -> TargetConfig:
    """Returns a target of the base with the price of the base's budget where the head gives the
    target one of its own, which would count as a price that was missing."""
    if ours.usd_per_hour is None and theirs.usd_per_hour is not None:
        return msgspec.structs.replace(ours, usd_per_hour=base.budget.usd_per_hour)
    return ours


def _within_limits(target: TargetConfig, base: Config) -> TargetConfig:
    """Returns a target of the head alone, neither cheaper nor more patient than the base's targets
    on its runners. At a lower price the budget's money would buy more time on the same machine."""
    labels = frozenset(target.runner)
    alike = [each for each in base.targets if frozenset(each.runner) == labels] or base.targets
    prices = [each.usd_per_hour for each in (*alike, target)]
    all_prices = [base.budget.usd_per_hour if price is None else price for price in prices]
    longest = max(each.device_wait_seconds for each in alike)
    return msgspec.structs.replace(
        target,
        usd_per_hour=max((price for price in all_prices if price is not None), default=None),
        device_wait_seconds=min(target.device_wait_seconds, longest),
    )


def target_changes(base: Config, head: Config) -> Iterator[PolicyChange]:
    """Returns a change for each target that is gone, new or defined differently."""
    ours = {target.name: target for target in base.targets}
    theirs = {target.name: target for target in head.targets}
    for name, target in ours.items():
        if name in theirs:
            ours_priced = _with_price(target, theirs[name], base)
            yield from section_changes(ours_priced, theirs[name], TARGET, "targets[]", target=name)
        else:
            yield PolicyChange(
                key="targets[].name",
                old=name,
                new="removed",
                effect="loosened",
                counts="once merged",
                target=name,
            )
    pending_names = _on_new_runners(base, head)
    for name, target in theirs.items():
        if name in pending_names:
            yield _unmerged_labels(target, "not set")
        elif name not in ours:
            yield PolicyChange(
                key="targets[].name",
                old="not set",
                new=name,
                effect="tightened",
                counts="now",
                target=name,
            )
            counting = _within_limits(target, base)
            if target.usd_per_hour is None:  # not set, so nothing is refused
                counting = msgspec.structs.replace(counting, usd_per_hour=None)
            yield from section_changes(counting, target, TARGET, "targets[]", target=name)


def on_known_runners(base: Config, head: Config) -> Config:
    """Returns the head's configuration without new targets on runners that no target of the base
    has. Labels choose the machine that a job of the matrix goes to, such as one with secrets. A
    model with only such targets is gated on those that its entry had."""
    pending_names = _on_new_runners(base, head)
    if not pending_names:
        return head
    before = {entry.path: entry.targets for entry in base.models}
    models = tuple(
        msgspec.structs.replace(
            entry,
            targets=tuple(name for name in entry.targets if name not in pending_names)
            or before.get(entry.path, ()),
        )
        for entry in head.models
    )
    targets = tuple(target for target in head.targets if target.name not in pending_names)
    return msgspec.structs.replace(head, models=models, targets=targets)


def _on_new_runners(base: Config, head: Config) -> frozenset[str]:
    ours, base_names = {frozenset(target.runner) for target in base.targets}, names(base)
    return frozenset(
        target.name
        for target in head.targets
        if target.name not in base_names and frozenset(target.runner) not in ours
    )


def on_usual_runners(targets: Iterable[TargetConfig]) -> tuple[TargetConfig, ...]:
    """Returns targets of a head without a base, with the labels that a target without any has."""
    usual = TargetConfig(name="").runner
    return tuple(msgspec.structs.replace(target, runner=usual) for target in targets)


def new_labels(
    targets: Iterable[TargetConfig], counting: Iterable[TargetConfig]
) -> Iterator[PolicyChange]:
    """Yields a policy change for each target whose labels are not those that count."""
    for theirs, ours in zip(targets, counting, strict=True):
        if frozenset(theirs.runner) != frozenset(ours.runner):
            yield _unmerged_labels(theirs, yaml_text(list(ours.runner)))


def _unmerged_labels(target: TargetConfig, counting: str) -> PolicyChange:
    return PolicyChange(
        key="targets[].runner",
        old=counting,
        new=yaml_text(list(target.runner)),
        effect="changed",
        counts="once merged",
        target=target.name,
    )


def names(config: Config) -> tuple[str, ...]:
    return tuple(target.name for target in config.targets)


# The `metric-command` that runs: only the base's. A pull request chooses nothing that runs.

METRIC_KEY = "models[].accuracy.metric-command"
_Metric = MetricCommandConfig | None


def metric_of(accuracy: Accuracy) -> _Metric:
    return None if accuracy == "same" else accuracy.metric_command


def merged_metric(old: _Metric, new: _Metric) -> _Metric:
    """Returns the base's command. Of two bounds on the same command the stricter one counts."""
    if old is None or new is None or old.run != new.run:
        return old
    return merged_section(old, new, METRIC_COMMAND)


def metric_changes(old: _Metric, new: _Metric, model: ModelPath) -> Iterator[PolicyChange]:
    if old is not None and new is not None and old.run == new.run:
        yield from section_changes(old, new, METRIC_COMMAND, METRIC_KEY, model=model)
    elif old != new:
        yield PolicyChange(
            key=METRIC_KEY,
            old=yaml_text(old),
            new=yaml_text(new),
            effect="loosened" if new is None else "changed",
            counts="once merged",
            model=model,
        )


def without_commands(models: Iterable[ModelConfig]) -> tuple[ModelConfig, ...]:
    """Returns entries of a head without a base. An entry with a command gets float32 alone, because
    the command's bound cannot be checked."""
    return tuple(
        msgspec.structs.replace(model, accuracy="same") if metric_of(model.accuracy) else model
        for model in models
    )


def new_commands(models: Iterable[ModelConfig]) -> Iterator[PolicyChange]:
    """Yields a policy change for each command of these entries: nobody has merged it."""
    for model in models:
        metric = metric_of(model.accuracy)
        if metric is not None:
            yield from metric_changes(None, metric, model.path)


# Files of values outside the repository, on the runner, and who may name them.


def newly_outside(base: Config | None, judging: Config) -> tuple[str, ...]:
    """Returns a line for each absolute path that the base's configuration lacks. A change, such as
    one of a fork, must not choose what is read on the runner."""
    base_files = {file for _, file in _outside(base)} if base is not None else set()
    return tuple(
        f"models: {where}: {file} lies outside of the repository, and only a configuration that is "
        "merged may name it. Commit the file, or merge the configuration first."
        for where, file in _outside(judging)
        if file not in base_files
    )


def _outside(config: Config) -> Iterator[tuple[str, str]]:
    for entry in config.models:
        yield from _absolute_files(entry.inputs, entry.path)
        for name, profile in entry.profiles.items():
            yield from _absolute_files(profile.inputs, f"{entry.path}: profiles.{name}")


def _absolute_files(inputs: Inputs, where: str) -> Iterator[tuple[str, str]]:
    for name, values in values_of(inputs).items():
        for file in values.files:
            if PurePath(file).is_absolute():
                yield f"{where}: inputs.{name}.values", file


# The watched lock files: the base's, and what the head adds. The base decides where packages come
# from, so an index of the head counts once it is merged.


def merged_watch(base: WatchConfig, head: WatchConfig) -> WatchConfig:
    """Returns the union of the globs: more files are stricter."""
    return msgspec.structs.replace(base, files=tuple(dict.fromkeys((*base.files, *head.files))))


def watch_changes(base: WatchConfig, head: WatchConfig) -> Iterator[PolicyChange]:
    """Returns a change for each glob that is gone or new, and one for other indexes."""
    for glob in base.files:
        if glob not in head.files:
            yield _change("files", glob, "removed", "loosened")
    for glob in head.files:
        if glob not in base.files:
            yield _change("files", "not set", glob, "tightened")
    if base.indexes != head.indexes:
        old, new = (yaml_text(list(each.indexes)) for each in (base, head))
        yield _change("indexes", old, new, "changed")


def _change(key: str, old: str, new: str, effect: Effect) -> PolicyChange:
    counts = "now" if effect == "tightened" else "once merged"
    return PolicyChange(
        key=f"watch.{key}",
        old=old,
        new=new,
        effect=effect,
        counts=counts,  # type: ignore[arg-type]
    )
