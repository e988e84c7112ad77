"""The rules that a verdict is reached by."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

import msgspec

from tunegate.artifacts.changes import ChangeSet, ModelPath
from tunegate.artifacts.waivers import Waiver
from tunegate.config import Config, GateConfig, ObjectiveConfig
from tunegate.policy.waivers import Waivers
from tunegate.selection import entry_for


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
