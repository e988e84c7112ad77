"""Configured settings for external sources: the cache's endpoint is the team's."""

from __future__ import annotations

import msgspec


class SourceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The cache's `endpoint-url` and `region`; None is the SDK's own choice."""

    endpoint_url: str | None = None
    region: str | None = None
