"""An index of a group, ready for look-ups of a workload's blocks."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tunegate_cache.format.names import Group
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.format.snapshot_index import SnapshotIndex


class OpenSnapshot(msgspec.Struct, frozen=True):
    """An index, ready for look-ups."""

    group: Group
    index: SnapshotIndex
    block_of: Mapping[str, int]
    revoked: tuple[Revocation, ...]
