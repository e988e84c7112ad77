"""Copies a group to another store, and segments from one."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tunegate_cache.format import segment
from tunegate_cache.format.names import Group, SegmentName, parse_segment, segment_name
from tunegate_cache.format.signing import Signer, TrustedKeys
from tunegate_cache.protocol import group_state
from tunegate_cache.protocol.segments import opened_segment, read_archive
from tunegate_cache.stores.store import (
    MaintainedStore,
    ObjectNotFoundError,
    ObjectStore,
    PointerMovedError,
)


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """`records` counts those of segments, including objects that existed already."""

    objects: int = 0
    records: int = 0
    size_bytes: int = 0
    problems: tuple[str, ...] = ()

    def plus(self, other: Copied) -> Copied:
        return Copied(
            objects=self.objects + other.objects,
            records=self.records + other.records,
            size_bytes=self.size_bytes + other.size_bytes,
            problems=(*self.problems, *other.problems),
        )


def pull(
    source: ObjectStore, destination: MaintainedStore, group: Group, keys: TrustedKeys
) -> Copied:
    """Copies the snapshot, the segments beside it, and HEAD last: an interrupted copy is an older
    cache, not a broken one. Raises StoreUnavailableError."""
    listing = group_state.listing(source, group)
    current = group_state.current_head(source, group, keys)
    covered = set(current.head.covers) if current.head else set()
    names = [s.name for s in listing.segments if s.file not in covered]
    if current.head is not None:
        names += dict.fromkeys(current.head.referenced_objects(group))
    copied = Copied()
    for name in names:
        try:
            body = source.read(name)
        except ObjectNotFoundError:
            copied = copied.plus(Copied(problems=(f"{name} is missing; run tunegate cache fsck",)))
            continue
        destination.write(name, body)
        copied = copied.plus(Copied(objects=1, size_bytes=len(body)))
    if current.head is not None:
        pointer = source.read_pointer(group.head)
        _replace(destination, group.head, pointer.body)
    return copied


def push(
    source: ObjectStore,
    destination: ObjectStore,
    *,
    from_zone: str,
    zone: str,
    signer: Signer | None,
) -> Copied:
    """Copies a zone's segments, including archived ones, signed again for their destination. Raises
    StoreUnavailableError."""
    copied = Copied()
    for name, body in _segments(source, from_zone):
        contents = opened_segment(name, body, TrustedKeys())
        if isinstance(contents, str):
            copied = copied.plus(Copied(problems=(f"{name.name}: {contents}",)))
            continue
        payload = segment.without_signature(body)
        new = segment_name(
            zone,
            name.target,
            milliseconds=name.milliseconds,
            writer=name.writer,
            digest=name.digest,
        )
        if signer is not None:
            payload = segment.append_signature(payload, signer.sign(new.name, new.digest))
        destination.write(new.name, payload)
        records = len(contents.records)
        copied = copied.plus(Copied(objects=1, records=records, size_bytes=len(payload)))
    return copied


def _segments(source: ObjectStore, zone: str) -> Iterator[tuple[SegmentName, bytes]]:
    for group in group_state.groups(source, zone):
        current = group_state.current_head(source, group, TrustedKeys())
        for digest in current.head.archives if current.head else ():
            yield from read_archive(source, group, digest)
    for name in map(parse_segment, source.names(f"ms1/z/{zone}/")):
        if name is not None and name.zone == zone:
            yield name, source.read(name.name)


def _replace(store: MaintainedStore, name: str, body: bytes) -> None:
    while True:
        try:
            tag = store.read_pointer(name).tag
        except ObjectNotFoundError:
            tag = None
        try:
            store.move_pointer(name, body, tag)
        except PointerMovedError:
            continue
        return
