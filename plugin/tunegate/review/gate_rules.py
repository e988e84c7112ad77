"""The rules that a verdict is reached by."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from tunegate.artifacts.artifact_io import digest_of
from tunegate.artifacts.builds import Cell
from tunegate.artifacts.changes import (
    ChangeSet,
    ModelPath,
    ModelVersion,
    PolicyChange,
    path_of,
    without_upgrade,
)
from tunegate.artifacts.verdicts import Waiver, waiver_of, waivers_of_cells
from tunegate.config import Config, GateConfig, ObjectiveConfig, TargetConfig
from tunegate.errors import config_error
from tunegate.ports import ModelReader
from tunegate.review.base_rules import newly_outside
from tunegate.review.effective_config import Effective, effective, of_head_alone
from tunegate.review.model_settings import entry_for, inputs_of, targets_for
from tunegate.wording import did_you_mean


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """The agreements beside the margin. Waivers expire by `today`; `pending_waivers` count once
    merged; `signed_waivers` are those of a commit message, counting or pending.
    `has_unread_waivers` means that a waiver file has a mistake. `metric_margin` is the tolerated
    loss of the user's metric."""

    waivers: tuple[Waiver, ...] = ()
    pending_waivers: tuple[Waiver, ...] = ()
    signed_waivers: tuple[Waiver, ...] = ()
    has_unread_waivers: bool = False
    today: datetime.date = datetime.date.min
    objectives: Mapping[ModelPath, ObjectiveConfig] = {}
    metric_margin: float = 0.0


NO_POLICIES = Policies()


def policies_under(waivers: Waivers, today: datetime.date, metric_margin: float) -> Policies:
    """Returns the policies of these waivers today, and of a metric that may fall by
    `metric_margin`."""
    return Policies(
        waivers=waivers.counting,
        pending_waivers=waivers.pending,
        signed_waivers=waivers.signed,
        has_unread_waivers=waivers.has_unread,
        today=today,
        metric_margin=metric_margin,
    )


class GateRules(msgspec.Struct, frozen=True, kw_only=True):
    """`gate` is the judging section of the configuration, `policies` what counts beside it. The
    `targets` are not rules, but a pass is about them: the verdict says which they were."""

    gate: GateConfig
    policies: Policies = NO_POLICIES
    targets: tuple[TargetConfig, ...] = ()


def waived_gate(rules: GateRules, cell: Cell) -> GateConfig | None:
    """Returns the gate that a waived cell must pass. None without a waiver that counts today."""
    waiver = waiver_of(rules.policies.waivers, cell)
    if waiver is None or waiver.expires < rules.policies.today:
        return None
    return gate_at(rules.gate, waiver.ceiling_percent)


def gate_at(gate: GateConfig, ceiling_percent: float) -> GateConfig:
    """Returns the gate with a waiver's ceiling as margin, which widens that of the mean and the
    tail."""
    widest = max(ceiling_percent, gate.tail_margin_percent)
    return msgspec.structs.replace(gate, margin_percent=ceiling_percent, tail_margin_percent=widest)


def with_configured(rules: GateRules, config: Config, changes: ChangeSet) -> GateRules:
    """Returns the rules with the configured targets, and the latency objective of each changed
    model."""
    entries = {change.path: entry_for(config, change.path) for change in changes.models}
    objectives = {
        path: entry.objective for path, entry in entries.items() if entry and entry.objective
    }
    policies = msgspec.structs.replace(rules.policies, objectives=objectives)
    return msgspec.structs.replace(rules, policies=policies, targets=config.targets)


# The rules of a verdict as one digest.


def rules_digest(rules: GateRules) -> str:
    """Returns a digest that is equal for two runs that judge alike, also on different days."""
    policies = msgspec.structs.replace(rules.policies, today=datetime.date.min)
    return digest_of(GateRules(gate=rules.gate, policies=policies))


# The configuration that judges these models, merged from base and head.


def judging_config(
    base: Config | None, head: Config, changes: ChangeSet, reader: ModelReader
) -> Config:
    """Returns the configuration that judges the models of these changes. A later job derives it
    again, whatever it was handed."""
    heads = {model.head.path: model.head for model in changes.models if model.head is not None}
    before = {path_of(model.path): model.base for model in changes.models if model.base is not None}
    is_merged = changes.revisions.judged_by is None
    return judged_by(base, head, heads, before, reader, is_merged=is_merged).config


def judged_by(
    base: Config | None,
    head: Config,
    versions: Mapping[ModelPath, ModelVersion],
    before: Mapping[ModelPath, ModelVersion],
    reader: ModelReader,
    *,
    is_merged: bool,
) -> Effective:
    """Returns the judging configuration. `versions` are the head's models, `before` their versions
    at the base. Without a configuration at the base it is the head's, without its commands.
    `is_merged` says that a head without a base is merged. Raises ConfigError for files on the
    runner that only an unmerged head names."""

    if base is None:
        rules = of_head_alone(head, is_merged=is_merged)
    else:
        rules = effective(
            base,
            head,
            {path: before[path].path if path in before else path for path in versions},
            lambda path: inputs_of(reader, versions[path]),
            lambda path: inputs_of(reader, before.get(path)),
        )
    if not is_merged and (problems := newly_outside(base, rules.config)):
        raise config_error(problems)
    return rules


# The waivers that count: the base's, as far as the head keeps them.


class Waivers(msgspec.Struct, frozen=True, kw_only=True):
    """`counting` waivers apply to this verdict. `pending` ones of the head count once merged.
    `signed` ones come from a commit message, all others from the file. `notes` name files or
    waivers that waive nothing, and why. `has_unread` means that a file has a mistake."""

    counting: tuple[Waiver, ...] = ()
    pending: tuple[Waiver, ...] = ()
    signed: tuple[Waiver, ...] = ()
    changes: tuple[PolicyChange, ...] = ()
    notes: tuple[str, ...] = ()
    has_unread: bool = False


NO_WAIVERS = Waivers()


def merged_waivers(base: Sequence[Waiver], head: Sequence[Waiver], file: str) -> Waivers:
    """Merges the waivers of two versions of `file`. A waiver that the head removes, lowers or
    shortens counts as in the head. A profile without its own waiver has its model's in either
    version, so removing one leaves no wider waiver in its place."""
    cells = dict.fromkeys(waiver.cell for waiver in (*base, *head))
    before, after = waivers_of_cells(base, cells), waivers_of_cells(head, cells)
    return Waivers(
        counting=tuple(
            _narrower(cell, old, new)
            for cell in cells
            if (old := before[cell]) is not None and (new := after[cell]) is not None
        ),
        pending=tuple(
            msgspec.structs.replace(new, model=cell.model)
            for cell, new in after.items()
            if new is not None and _is_wider(new, before[cell])
        ),
        changes=tuple(_changes(before, after, file)),
    )


def rebased_waivers(
    fork: Sequence[Waiver], base: Sequence[Waiver], head: Sequence[Waiver]
) -> tuple[Waiver, ...]:
    """Returns the head's waivers as a merge into the base would leave them: one that is as it was
    at the fork is the base's."""
    was, now, own = ({waiver.cell: waiver for waiver in each} for each in (fork, base, head))
    of_both = (
        (now if own.get(cell) == was.get(cell) else own).get(cell)
        for cell in dict.fromkeys((*now, *own))
    )
    return tuple(waiver for waiver in of_both if waiver is not None)


def _narrower(cell: Cell, old: Waiver, new: Waiver) -> Waiver:
    return msgspec.structs.replace(
        old,
        model=cell.model,
        ceiling_percent=min(old.ceiling_percent, new.ceiling_percent),
        expires=min(old.expires, new.expires),
    )


def _is_wider(new: Waiver, old: Waiver | None) -> bool:
    return old is None or new.ceiling_percent > old.ceiling_percent or new.expires > old.expires


def _changes(
    before: dict[Cell, Waiver | None], after: dict[Cell, Waiver | None], file: str
) -> Iterator[PolicyChange]:
    for cell, old in before.items():
        new = after[cell]
        if _terms(old) != _terms(new):
            is_wider = new is not None and _is_wider(new, old)
            yield PolicyChange(
                key=file,
                old=_terms(old),
                new=_terms(new),
                effect="loosened" if is_wider else "tightened",
                counts="once merged" if is_wider else "now",
                model=cell.model,
                target=cell.target,
            )


def _terms(waiver: Waiver | None) -> str:
    if waiver is None:
        return "no waiver"
    return f"up to +{waiver.ceiling_percent:g}% until {waiver.expires}"


# Waivers without effect: no configured model or target has their name.

_MOST_STRAYS = 20
"""A likely name is looked for each, which is slow, and a pull request may have thousands."""


def stray_waivers(
    waivers: Iterable[Waiver],
    config: Config,
    models: Iterable[ModelPath],
    files: Collection[str] = (),
) -> Iterator[str]:
    """Yields a line for each of the first waivers of an unknown model, or of a target that its
    model lacks, and one on the others. A model's path stands for all its profiles. Any other of
    the `files` may be a model of another configuration."""
    names = {without_upgrade(name) for name in models}
    all_names = names | {path_of(name) for name in names}
    others = {*files} - all_names
    strays = (
        f"the waiver of {cell.model} on {cell.target} waives nothing: {problem}"
        for cell in dict.fromkeys(waiver.cell for waiver in waivers)
        if path_of(cell.model) not in others and (problem := _problem(cell, config, all_names))
    )
    yield from islice(strays, _MOST_STRAYS)
    if next(strays, None):
        yield "more waivers of this file waive nothing"


def _problem(cell: Cell, config: Config, models: Collection[ModelPath]) -> str:
    model = without_upgrade(cell.model)
    if model not in models:
        return f"no configured model has this name.{_suggestion(model, models)}"
    targets = targets_for(config, path_of(model))
    if targets and cell.target not in targets:
        return f"the model has no target {cell.target}.{_suggestion(cell.target, targets)}"
    return ""


def _suggestion(word: str, words: Collection[str]) -> str:
    names = sorted(words)
    hint = f"Known: {', '.join(names[:5])}."
    return f" {did_you_mean(word, names, hint)}"
