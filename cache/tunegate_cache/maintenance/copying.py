"""Copies a group to another store, and segments from one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec

from tunegate_cache.format import names, segment
from tunegate_cache.format.head import Head
from tunegate_cache.format.names import Group, SegmentName, parse_segment
from tunegate_cache.format.signing import Signer, TrustedKeys
from tunegate_cache.maintenance.compaction import Compactor
from tunegate_cache.protocol import archive, group_state
from tunegate_cache.protocol.archive import CorruptArchiveError
from tunegate_cache.protocol.group_state import CurrentHead
from tunegate_cache.protocol.segments import opened_segment, read_archive
from tunegate_cache.stores.store import (
    MaintainedStore,
    ObjectNotFoundError,
    ObjectStore,
    PointerMovedError,
)

_MOST_TRIES = 3
_UNMERGED = (
    "the copy has records or revocations of its own, and a HEAD for all needs a signature. Set "
    "TUNEGATE_SIGNING_KEY, or name another directory"
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
    source: ObjectStore,
    destination: MaintainedStore,
    group: Group,
    keys: TrustedKeys,
    signer: Signer | None = None,
) -> Copied:
    """Copies the snapshot, the segments beside it, and HEAD last: an interrupted copy is an older
    cache, not a broken one. Where the destination has records or revocations of its own, HEAD is
    not copied: a compaction there, signed by `signer`, merges both. Begins again if something is
    gone that a compaction and a collection have replaced meanwhile. Raises
    StoreUnavailableError."""
    tries = 0
    while True:
        tries += 1
        object_names, current = _to_copy(source, group, keys)
        copied = _copy(source, destination, object_names)
        is_same = group_state.current_head(source, group, keys).digest == current.digest
        if copied.problems and not is_same and tries < _MOST_TRIES:
            continue
        problems = _move_head(source, destination, group, current, keys=keys, signer=signer)
        return copied.plus(Copied(problems=problems))


def _move_head(
    source: ObjectStore,
    destination: MaintainedStore,
    group: Group,
    current: CurrentHead,
    *,
    keys: TrustedKeys,
    signer: Signer | None,
) -> tuple[str, ...]:
    """Gives the destination the HEAD, or one of what both have. Returns problems."""
    if current.head is None:
        return ()
    while True:
        own = group_state.current_head(destination, group, keys)
        if own.is_later:
            return (f"{group.zone}: {own.problem}",)
        try:
            if not _has_more(source, destination, group, own, current.head):
                destination.move_pointer(group.head, current.body, own.tag)
                return ()
        except PointerMovedError:
            continue
        if not keys.is_signer(group.zone, signer):
            return (f"{group.zone}: {_UNMERGED}",)
        compactor = Compactor(
            destination, group, keys=keys, signer=signer, seconds=lambda: int(time.time())
        )
        merged = compactor.run(revoke=current.head.revoked)
        if merged.status != "moved":
            return tuple(f"{group.zone}: {problem}" for problem in merged.problems)


def _has_more(
    source: ObjectStore, destination: ObjectStore, group: Group, own: CurrentHead, head: Head
) -> bool:
    """Returns whether the destination has archived or revoked what the HEAD does not know."""
    if own.head is not None and not set(own.head.revoked) <= set(head.revoked):
        return True
    theirs = {group.content("cold", digest) for digest in head.archives}
    more = set(group_state.listing(destination, group).archives) - theirs
    return bool(more) and not _files(destination, more) <= _files(source, theirs)


def _files(store: ObjectStore, archives: Iterable[str]) -> frozenset[str]:
    """Returns the files of the segments in those that can be read."""
    files: set[str] = set()
    for name in archives:
        with suppress(CorruptArchiveError, ObjectNotFoundError):
            files |= archive.files(store, name)
    return frozenset(files)


def _to_copy(
    source: ObjectStore, group: Group, keys: TrustedKeys
) -> tuple[Sequence[str], CurrentHead]:
    """Returns the names of the objects that the HEAD and its readers need, and the HEAD."""
    listing = group_state.listing(source, group)
    current = group_state.current_head(source, group, keys)
    covered = set(current.head.covers) if current.head else set()
    object_names = [s.name for s in listing.segments if s.file not in covered]
    if current.head is not None:
        object_names += dict.fromkeys(current.head.referenced_objects(group))
    return object_names, current


def _copy(source: ObjectStore, destination: MaintainedStore, object_names: Iterable[str]) -> Copied:
    copied = Copied()
    for name in object_names:
        with suppress(ObjectNotFoundError):
            body = source.read(name)
            if segment.is_proven(name, body):  # else it would bar the whole one from the copy
                destination.write(name, body)
                copied = copied.plus(Copied(objects=1, size_bytes=len(body)))
                continue
        problem = f"{name} is missing or damaged; run tunegate cache fsck"
        copied = copied.plus(Copied(problems=(problem,)))
    return copied


def push(
    source: MaintainedStore,
    destination: ObjectStore,
    *,
    from_zone: str,
    zone: str,
    signer: Signer | None,
    are_moved: bool = False,
) -> Copied:
    """Copies a zone's segments, including archived ones, signed again for their destination, each
    once. If they `are_moved`, the source forgets each that was delivered, and nothing else: a run
    may add others meanwhile. Raises StoreUnavailableError."""
    copied = Copied()
    files: set[str] = set()
    for name, body in _segments(source, from_zone):
        if isinstance(body, str):
            copied = copied.plus(Copied(problems=(f"{name}: {body}",)))
            continue
        segment_name = parse_segment(name)
        if segment_name is None or segment_name.file in files:
            continue
        contents = opened_segment(segment_name, body, TrustedKeys())
        if isinstance(contents, str):
            copied = copied.plus(Copied(problems=(f"{name}: {contents}",)))
            continue
        files.add(segment_name.file)
        size = _deliver(segment_name, body, destination, zone, signer)
        if are_moved:
            source.delete(name)
        records = len(contents.records)
        copied = copied.plus(Copied(objects=1, records=records, size_bytes=size))
    return copied


def _deliver(
    name: SegmentName, body: bytes, destination: ObjectStore, zone: str, signer: Signer | None
) -> int:
    """Writes a segment to the zone, and returns its size in bytes."""
    payload = segment.without_signature(body)
    new = names.segment_name(
        zone, name.target, milliseconds=name.milliseconds, writer=name.writer, digest=name.digest
    )
    if signer is not None:
        payload = segment.append_signature(payload, signer.sign(new.name, new.digest))
    destination.write(new.name, payload)
    return len(payload)


def _segments(source: ObjectStore, zone: str) -> Iterator[tuple[str, bytes | str]]:
    """Yields the zone's segments by name, those that stand alone first: what is compacted meanwhile
    is in an archive then. Yields why an object cannot be read in place of its content."""
    for name in map(parse_segment, source.names(f"ms1/z/{zone}/")):
        if name is not None and name.zone == zone:
            with suppress(ObjectNotFoundError):  # compacted or delivered meanwhile
                yield name.name, source.read(name.name)
    for group in group_state.groups(source, zone):
        current = group_state.current_head(source, group, TrustedKeys())
        for digest in current.head.archives if current.head else ():
            try:
                for segment_name, body in read_archive(source, group, digest):
                    yield segment_name.name, body
            except CorruptArchiveError as error:
                yield group.content("cold", digest), str(error)
