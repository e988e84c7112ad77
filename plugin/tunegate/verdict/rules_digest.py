"""The rules that a verdict was reached by, as one digest."""

from __future__ import annotations

import datetime

import msgspec

from tunegate.digests import digest_of
from tunegate.policy.gate_rules import GateRules


def rules_digest(rules: GateRules) -> str:
    """Equal for two runs that judge alike, also on different days."""
    undated = msgspec.structs.replace(rules.policies, today=datetime.date.min)
    return digest_of(msgspec.structs.replace(rules, policies=undated))
