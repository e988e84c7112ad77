"""The position of a block of records in a pack."""

from __future__ import annotations

import msgspec


class PackBlock(msgspec.Struct, frozen=True, array_like=True):
    """The position of a block in its pack, and the digest of its bytes: no name proves a part of a
    pack."""

    pack: int
    start: int
    size: int
    digest: bytes
