"""Deletes what is no longer needed: only what a HEAD, read just before, holds elsewhere.

A segment is deleted if the HEAD covers it and an archive of that HEAD holds it, byte for byte.
Packs, indexes and archives are deleted if that HEAD has known them as unreferenced for
`grace_seconds`: a compaction that made one can no longer refer to it, because HEAD has moved since.
"""

from collections.abc import Iterator

import msgspec

from tunegate_cache.format import segment
from tunegate_cache.format.head import Head
from tunegate_cache.format.names import Group, SegmentName
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.protocol import archive, group_state
from tunegate_cache.protocol.group_state import Listing
from tunegate_cache.protocol.segments import read_archive
from tunegate_cache.stores.store import MaintainedStore

GRACE_SECONDS = 24 * 3600


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """The deleted objects, or those that would be deleted."""

    group: Group
    segments: int
    others: int
    problems: tuple[str, ...] = ()


def collect(
    store: MaintainedStore,
    group: Group,
    *,
    keys: TrustedKeys,
    now: int,
    grace_seconds: int = GRACE_SECONDS,
    dry_run: bool = False,
) -> Collection:
    """Collects the garbage of a group. Raises StoreUnavailableError."""
    listing, current = group_state.state(store, group, keys)
    if current.head is None:
        problems = (current.problem,) if current.problem else ()
        return Collection(group=group, segments=0, others=0, problems=problems)
    problems_found: list[str] = []
    segments = list(_archived_segments(store, group, listing, current.head, problems_found))
    referenced = set(current.head.referenced_objects(group))
    present = {*listing.packs, *listing.indexes, *listing.archives} - referenced
    others = [
        entry.name
        for entry in current.head.unreferenced
        if entry.since <= now - grace_seconds and entry.name in present
    ]
    if not dry_run:
        for name in (*(segment_name.name for segment_name in segments), *others):
            store.delete(name)
    return Collection(
        group=group, segments=len(segments), others=len(others), problems=tuple(problems_found)
    )


def _archived_segments(
    store: MaintainedStore, group: Group, listing: Listing, head: Head, problems: list[str]
) -> Iterator[SegmentName]:
    """Yields the segments that an archive holds, too; archives are read latest first, until all are
    found."""
    covered = set(head.covers)
    by_file = {name.file: name for name in listing.segments if name.file in covered}
    for digest in reversed(head.archives):
        if not by_file:
            return
        try:
            for name, body in read_archive(store, group, digest):
                if name.file in by_file and segment.segment_digest(body) == name.digest:
                    yield by_file.pop(name.file)
        except archive.CorruptArchiveError as error:
            problems.append(f"archive {digest[:16]}: {error}")
