"""The trust of a run in a store's content, and its own signature."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tunegate_cache.format.names import Group
from tunegate_cache.format.signing import Signer, TrustedKeys
from tunegate_cache.protocol.rollback_guard import RollbackGuard

PinnedSnapshots = Mapping[Group, str]
"""Digest of the index that a group is pinned to."""


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """`keys` must have signed what their zones hold; `signer` signs what this run writes. Of a
    pinned group only the snapshot it is pinned to is read, and no HEAD older than one in `seen`."""

    keys: TrustedKeys = TrustedKeys()
    signer: Signer | None = None
    pins: PinnedSnapshots = {}
    seen: RollbackGuard = msgspec.field(default_factory=RollbackGuard)
