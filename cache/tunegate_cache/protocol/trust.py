"""A run's trust in a store's content, and its own signature."""

from collections.abc import Mapping

import msgspec

from tunegate_cache.format.names import Group
from tunegate_cache.format.signing import Signer, TrustedKeys
from tunegate_cache.protocol.rollback_guard import RollbackGuard

PinnedSnapshots = Mapping[Group, str]
"""The digest of the index that a group is pinned to."""


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """`keys` must have signed their zones' content; `signer` signs what this run writes. Of a
    pinned group only the pinned snapshot is read, and never a HEAD older than one in `seen`."""

    keys: TrustedKeys = TrustedKeys()
    signer: Signer | None = None
    pins: PinnedSnapshots = {}
    seen: RollbackGuard = msgspec.field(default_factory=RollbackGuard)
