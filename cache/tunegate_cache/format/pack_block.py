"""The position of a block of records in a pack."""

from __future__ import annotations

import msgspec


class PackBlock(msgspec.Struct, frozen=True, array_like=True):
    """The position of a block in its pack and the digest of its bytes: a part of
    a pack has no name to prove it."""

    pack: int
    start: int
    size: int
    digest: bytes
