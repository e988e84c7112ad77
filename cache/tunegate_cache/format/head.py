"""HEAD: the content of a group as of the last compaction. The only object that changes."""

import hashlib
from collections.abc import Iterator
from typing import Annotated

import msgspec

from tunegate_cache.format.names import Group
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.format.signing import Signature, Signer, TrustedKeys
from tunegate_cache.format.validate import NOT_JSON

_VERSION = 1
_DAY_SECONDS = 24 * 3600
KEPT_SECONDS = 30 * _DAY_SECONDS
MOST_NAMED = 2**16
"""The most archives that a HEAD may name, one for each compaction that found something, and the
most earlier snapshots, or revocations: upkeep follows the first ones by a request each, and a
reader compares each record with the last."""
_Number = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""The writers of a zone choose its numbers. A number above this bound could not be written
again."""
_Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
_PublicKey = Annotated[str, msgspec.Meta(pattern=r"^ed25519:[A-Za-z0-9+/]{43}=\Z")]


class CorruptHeadError(Exception):
    """An invalid HEAD: damaged, of a later version, or not signed by a trusted key."""


class LaterHeadError(CorruptHeadError):
    """A HEAD of a later version, which must be left alone."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The snapshot that a pinned build reads: an index and the packs it points into."""

    version: _Number
    index: _Digest
    packs: tuple[_Digest, ...]
    at: _Number


class Unreferenced(msgspec.Struct, frozen=True, array_like=True):
    """An unreferenced object, and since when (seconds since 1970): it comes from a compaction that
    died, lost its race, or was followed by others. Of a HEAD that was lost it counts from a month
    on."""

    name: str
    since: _Number


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """`version` counts compactions, of a signed zone and where a HEAD was lost from the seconds
    since 1970 on; `parent` is the digest of the HEAD before.

    `archives` hold every segment ever written, `snapshot` the best of them. `covers` are the file
    names of those segments that still exist beside the archives and need not be read. `kept` are
    earlier snapshots that pinned builds may still read. `keys` are those that the zone trusted:
    none where it needs none, or where an older version wrote the HEAD.
    """

    v: int = _VERSION
    version: _Number
    parent: str
    snapshot: Snapshot
    archives: tuple[_Digest, ...]
    covers: tuple[str, ...]
    revoked: tuple[Revocation, ...] = ()
    kept: tuple[Snapshot, ...] = ()
    unreferenced: tuple[Unreferenced, ...] = ()
    keys: tuple[_PublicKey, ...] = ()

    def referenced_objects(self, group: Group) -> Iterator[str]:
        """Yields the names of all objects that must not be deleted."""
        for snapshot in (self.snapshot, *self.kept):
            yield group.content("idx", snapshot.index)
            yield from (group.content("pack", pack) for pack in snapshot.packs)
        yield from (group.content("cold", archive) for archive in self.archives)


class _Versioned(msgspec.Struct, frozen=True):
    """The part of a HEAD that is read before its version is known."""

    v: int = _VERSION


class _Signed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    head: msgspec.Raw
    key: str = ""
    signature: str = ""


def encode_head(head: Head, group: Group, signer: Signer | None) -> bytes:
    body = msgspec.json.encode(head, order="deterministic")
    if signer is None:
        return msgspec.json.encode(_Signed(head=msgspec.Raw(body)))
    signature = signer.sign(group.head, hashlib.sha256(body).hexdigest())
    return msgspec.json.encode(
        _Signed(head=msgspec.Raw(body), key=signature.key, signature=signature.value.hex())
    )


def decode_head(body: bytes, group: Group, keys: TrustedKeys) -> Head:
    """Decodes a HEAD. Raises CorruptHeadError."""
    try:
        envelope = msgspec.json.decode(body, type=_Signed)
        text = bytes(envelope.head)
        is_later = msgspec.json.decode(text, type=_Versioned).v > _VERSION
        head = None if is_later else msgspec.json.decode(text, type=Head)
        signature = Signature(envelope.key, bytes.fromhex(envelope.signature))
    except (*NOT_JSON, ValueError) as error:
        message = "HEAD cannot be read"
        raise CorruptHeadError(message) from error
    if head is None:
        message = "HEAD is of a later version: update tunegate"
        raise LaterHeadError(message)
    if max(map(len, (head.archives, head.kept, head.revoked, head.keys))) > MOST_NAMED:
        raise CorruptHeadError(f"HEAD is damaged: it names more than {MOST_NAMED} objects")
    if not keys.accepts(group.zone, group.head, hashlib.sha256(text).hexdigest(), signature):
        message = "HEAD is not signed by a trusted key"
        raise CorruptHeadError(message)
    return head


def head_digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def kept_for_pins(snapshots: tuple[Snapshot, ...], now: int) -> tuple[Snapshot, ...]:
    """Returns all snapshots that were current in the last day, and the last one made on each day
    until a month after the next one replaced it: a build may pin it that long after it was made.
    The last of them is replaced now. One that is dated in the future is of now, or it would be
    kept for ever."""
    made = [msgspec.structs.replace(s, at=min(s.at, now)) for s in snapshots]
    made.sort(key=lambda s: s.version)
    replaced_at = (*(s.at for s in made[1:]), now)
    by_day: dict[int, Snapshot] = {}
    chosen: dict[int, Snapshot] = {}
    for snapshot, until in zip(made, replaced_at, strict=False):
        age = now - max(snapshot.at, until)
        if age <= KEPT_SECONDS:
            by_day[snapshot.at // _DAY_SECONDS] = snapshot
        if age <= _DAY_SECONDS:
            chosen[snapshot.version] = snapshot
    chosen |= {s.version: s for s in by_day.values()}
    return tuple(chosen[version] for version in sorted(chosen))
