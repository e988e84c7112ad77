"""The rules that a verdict is reached by."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

import msgspec

from tunegate.artifacts.changes import ChangeSet, ModelInput, ModelPath, ModelVersion, path_of
from tunegate.artifacts.digests import digest_of
from tunegate.artifacts.verdicts import Waiver
from tunegate.config import Config, GateConfig, ObjectiveConfig
from tunegate.errors import config_error
from tunegate.ports import ModelReader
from tunegate.review.base_rules import newly_outside
from tunegate.review.effective_config import Effective, effective, of_head_alone
from tunegate.review.model_settings import entry_for
from tunegate.review.waiver_policy import Waivers


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """The agreements beside the margin; `today` is the date by which waivers expire,
    `pending_waivers` count once they are merged, `signed_waivers` are those of either that a commit
    has and no file; it `has_unread_waivers` where the file has a mistake. `metric_margin` is how
    much less of the user's metric is no fault."""

    waivers: tuple[Waiver, ...] = ()
    pending_waivers: tuple[Waiver, ...] = ()
    signed_waivers: tuple[Waiver, ...] = ()
    has_unread_waivers: bool = False
    today: datetime.date = datetime.date.min
    objectives: Mapping[ModelPath, ObjectiveConfig] = {}
    metric_margin: float = 0.0


NO_POLICIES = Policies()


def policies_under(waivers: Waivers, today: datetime.date, metric_margin: float) -> Policies:
    """Returns the policies of these waivers today, beside a metric that may fall by so much."""
    return Policies(
        waivers=waivers.counting,
        pending_waivers=waivers.pending,
        signed_waivers=waivers.signed,
        has_unread_waivers=waivers.has_unread,
        today=today,
        metric_margin=metric_margin,
    )


class GateRules(msgspec.Struct, frozen=True, kw_only=True):
    """`gate` is the section of the configuration that judges, `policies` what counts beside it."""

    gate: GateConfig
    policies: Policies = NO_POLICIES


def with_configured(rules: GateRules, config: Config, changes: ChangeSet) -> GateRules:
    """The rules with the latency that the configuration asks of each changed model."""
    entries = {change.path: entry_for(config, change.path) for change in changes.models}
    objectives = {
        path: entry.objective for path, entry in entries.items() if entry and entry.objective
    }
    policies = msgspec.structs.replace(rules.policies, objectives=objectives)
    return msgspec.structs.replace(rules, policies=policies)


# The rules that a verdict was reached by, as one digest.


def rules_digest(rules: GateRules) -> str:
    """Equal for two runs that judge alike, also on different days."""
    undated = msgspec.structs.replace(rules.policies, today=datetime.date.min)
    return digest_of(msgspec.structs.replace(rules, policies=undated))


# The configuration that judges these models, made of base's and head's.


def judging_config(
    base: Config | None, head: Config, changes: ChangeSet, reader: ModelReader
) -> Config:
    """The configuration that judges the models of these changes: a later job finds it
    again, whatever it was handed."""
    found = {each.head.path: each.head for each in changes.models if each.head is not None}
    before = {path_of(each.path): each.base for each in changes.models if each.base is not None}
    return judged_by(base, head, found, before, reader).config


def judged_by(
    base: Config | None,
    head: Config,
    found: Mapping[ModelPath, ModelVersion],
    before: Mapping[ModelPath, ModelVersion],
    reader: ModelReader,
) -> Effective:
    """`found` are models of the head, `before` what they were at the base. Without a configuration
    of the base it is the head's, of which no command runs. Raises ConfigError for files on the
    runner that only the head names."""
    if base is None:
        return of_head_alone(head)

    def inputs_of(version: ModelVersion | None) -> tuple[ModelInput, ...] | None:
        outline = None if version is None else reader.outline(version)
        return None if outline is None else outline.inputs

    paths = {path: before[path].path if path in before else path for path in found}
    rules = effective(
        base,
        head,
        paths,
        lambda path: inputs_of(found[path]),
        lambda path: inputs_of(before.get(path)),
    )
    if problems := newly_outside(base, rules.config):
        raise config_error(problems)
    return rules
