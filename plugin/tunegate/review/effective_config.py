"""The configuration that judges a change: the base's, made stricter by the head's.

What the head loosens does not affect its own verdict. It is reported as a policy change and counts
once merged.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

import msgspec

from tunegate.artifacts.changes import ModelPath, PolicyChange
from tunegate.config import LOCAL, Config, OperatorLibraryConfig
from tunegate.review import base_rules, rules
from tunegate.review.covered_model import CoveredModel, InputsOf, JudgingEntry, judging_entry
from tunegate.review.model_settings import entry_for


class Effective(NamedTuple):
    config: Config
    changes: tuple[PolicyChange, ...]


def effective(
    base: Config,
    head: Config,
    models: Mapping[ModelPath, ModelPath],
    inputs_of: InputsOf,
    inputs_before: InputsOf = lambda _: None,
) -> Effective:
    """Returns the judging configuration. `models` maps each model of the head to its path at the
    base, a new one to itself. `inputs_before` are the inputs at the base. The head's rules hold for
    models that the base does not cover, on runners that the base has."""
    # Whole sections: for each key the value that counts, as its declaration says.
    everything, head = head, base_rules.on_known_runners(base, head)
    merged_config = msgspec.structs.replace(
        base,
        dims=head.dims,
        targets=base_rules.merged_targets(base, head),
        cache=rules.merged_section(base.cache, head.cache, rules.CACHE),
        budget=rules.merged_section(base.budget, head.budget, rules.BUDGET),
        gate=rules.merged_section(base.gate, head.gate, rules.GATE),
        watch=base_rules.merged_watch(base.watch, head.watch),
    )
    # Models that the base covers: the entry that judges each precedes the head's entries, because
    # the first match counts. Where the head asks for the same, its own entry stays.
    covered_models = [
        CoveredModel(path, old, entry_for(head, path))
        for path, before in sorted(models.items())
        if (old := entry_for(base, before)) is not None
    ]
    judging = [
        (model, judging_entry(model, base, head, inputs_of, inputs_before))
        for model in covered_models
    ]
    own = [entry.entry for model, entry in judging if not _is_in_head(model, entry, merged_config)]
    models_of_head = base_rules.without_commands(head.models)
    config = msgspec.structs.replace(merged_config, models=(*own, *models_of_head))
    # What the head loosens or tightens, for the report.
    own_paths = set(models) - {model.path for model in covered_models}
    own_entries = {id(entry_for(head, path)) for path in own_paths}
    changes = (
        *_of_sections(base, head),
        *base_rules.target_changes(base, everything),
        *_of_models(judging),
        *base_rules.new_commands(model for model in head.models if id(model) in own_entries),
    )
    return Effective(config, in_report_order(changes))


def rebased(fork: Config, base: Config, head: Config) -> Config:
    """Returns the head's configuration as a merge into the base would leave it. What a branch that
    is behind has not touched since the fork is no change of its own."""
    sections = {
        name: rules.rebased_section(getattr(fork, name), getattr(base, name), getattr(head, name))
        for name in ("cache", "budget", "gate", "watch")
    }
    return msgspec.structs.replace(
        rules.rebased_section(fork, base, head),
        **sections,
        models=rules.rebased_list(fork.models, base.models, head.models, "path"),
        targets=rules.rebased_list(fork.targets, base.targets, head.targets, "name"),
    )


def of_head_alone(head: Config, *, is_merged: bool = False) -> Effective:
    """Returns the head's own rules if the base has none, without its commands and libraries. A head
    that is not merged loses its executor, its indexes of packages and its labels of runners, too: a
    pull request would choose what runs, and where."""
    targets, watch, executor = head.targets, head.watch, head.executor
    if not is_merged:
        targets = base_rules.on_usual_runners(targets)
        watch = msgspec.structs.replace(watch, indexes=())
        executor = LOCAL
    config = msgspec.structs.replace(
        head,
        models=base_rules.without_commands(head.models),
        custom_operators=(),
        targets=targets,
        watch=watch,
        executor=executor,
    )
    changes = (
        *base_rules.new_commands(head.models),
        *_library_changes((), head),
        *base_rules.watch_changes(watch, head.watch),
        *_executor_changes(executor, head.executor),
        *base_rules.new_labels(head.targets, targets),
    )
    return Effective(config, changes)


def in_report_order(changes: Iterable[PolicyChange]) -> tuple[PolicyChange, ...]:
    """Returns the changes in the report's order. Those that someone must agree to come first, the
    gate's keys before others, because a long report is cut at its end."""
    gate = "gate."
    return tuple(
        sorted(changes, key=lambda each: (not each.weakens, not each.key.startswith(gate)))
    )


def _is_in_head(model: CoveredModel, judging: JudgingEntry, config: Config) -> bool:
    """Returns whether the head's own entry already asks for the same. A command runs only by an
    entry of the base."""
    if model.new is None:
        return False
    targets = set(model.new.targets or base_rules.names(config))
    return (
        targets == set(judging.entry.targets)
        and model.new.dims == judging.entry.dims
        and model.new.inputs == judging.entry.inputs
        and model.new.profiles == judging.entry.profiles
        and model.new.objective == judging.entry.objective
        and model.new.accuracy == judging.entry.accuracy
        and base_rules.metric_of(judging.entry.accuracy) is None
    )


def _of_sections(base: Config, head: Config) -> Iterator[PolicyChange]:
    yield from rules.section_changes(base.gate, head.gate, rules.GATE, "gate")
    yield from rules.section_changes(base.budget, head.budget, rules.BUDGET, "budget")
    yield from rules.section_changes(base.cache, head.cache, rules.CACHE, "cache")
    yield from base_rules.watch_changes(base.watch, head.watch)
    yield from _library_changes(base.custom_operators, head)
    yield from _executor_changes(base.executor, head.executor)


def _executor_changes(old: str, new: str) -> Iterator[PolicyChange]:
    if old != new:
        yield PolicyChange(key="executor", old=old, new=new, effect="changed", counts="once merged")


def _library_changes(
    before: tuple[OperatorLibraryConfig, ...], head: Config
) -> Iterator[PolicyChange]:
    """A library is code: the head can neither open one nor change its digest."""
    if head.custom_operators != before:
        old, new = (
            rules.yaml_text(list(each)) if each else "not set"
            for each in (before, head.custom_operators)
        )
        yield PolicyChange(
            key="custom-operators", old=old, new=new, effect="changed", counts="once merged"
        )


def _of_models(entries: Iterable[tuple[CoveredModel, JudgingEntry]]) -> Iterator[PolicyChange]:
    """Yields one change for all models of an entry with the same change."""
    changes = [(model.old.path, change) for model, each in entries for change in each.changes]
    changes.sort(key=lambda pair: (pair[0], msgspec.structs.astuple(_anywhere(pair[1]))))
    for (glob, _), same in groupby(changes, key=lambda pair: (pair[0], _anywhere(pair[1]))):
        group = [change for _, change in same]
        yield group[0] if len(group) == 1 else msgspec.structs.replace(group[0], model=glob)


def _anywhere(change: PolicyChange) -> PolicyChange:
    return msgspec.structs.replace(change, model="")
