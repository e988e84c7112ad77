"""The rules that a verdict was reached by, as one digest."""

from __future__ import annotations

import datetime

import msgspec

from tunegate.config import GateConfig
from tunegate.digests import digest_of
from tunegate.verdict.checks import Policies


class _Rules(msgspec.Struct, frozen=True, kw_only=True):
    gate: GateConfig
    policies: Policies


def rules_digest(gate: GateConfig, policies: Policies) -> str:
    """Equal for two runs that judge alike, also on different days."""
    undated = msgspec.structs.replace(policies, today=datetime.date.min)
    return digest_of(_Rules(gate=gate, policies=undated))
