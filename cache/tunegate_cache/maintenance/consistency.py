"""Checks that everything a group refers to exists and is valid. Reads everything."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from tunegate_cache.format.head import Head
from tunegate_cache.format.names import Group, SegmentName
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.protocol import archive, group_state
from tunegate_cache.protocol.group_state import Listing
from tunegate_cache.protocol.segments import opened_segment, read_archive
from tunegate_cache.protocol.snapshots import snapshot_problem
from tunegate_cache.stores.store import MaintainedStore, ObjectNotFoundError

Kind = Literal["head", "snapshot", "archive", "segment", "unarchived", "orphan"]


class Flaw(msgspec.Struct, frozen=True, kw_only=True):
    """A flaw. A rebuilding compaction heals `head`, `snapshot`, `orphan` and `unarchived`, which is
    a segment that HEAD covers but no archive holds. Of a broken `archive` it saves what still
    stands as segments; a broken `segment` is lost."""

    group: Group
    kind: Kind
    name: str
    what: str


def flaws(store: MaintainedStore, group: Group, keys: TrustedKeys) -> Iterator[Flaw]:
    """Yields the flaws of a group. Raises StoreUnavailableError."""
    listing, current = group_state.state(store, group, keys)
    if current.problem:
        yield Flaw(group=group, kind="head", name=group.head, what=current.problem)
    archived_files: set[str] = set()
    if current.head is not None:
        for snapshot in (current.head.snapshot, *current.head.kept):
            if problem := snapshot_problem(store, group, snapshot.index):
                index = group.content("idx", snapshot.index)
                yield Flaw(group=group, kind="snapshot", name=index, what=problem)
        yield from _archive_flaws(store, group, current.head, archived_files)
        yield from _orphans(group, listing, current.head)
    covered = set(current.head.covers) if current.head else set()
    for name in listing.segments:
        yield from _segment_flaws(store, group, name, keys)
        if name.file in covered and name.file not in archived_files:
            yield Flaw(
                group=group,
                kind="unarchived",
                name=name.name,
                what="HEAD covers it, and no archive holds it",
            )


def _archive_flaws(
    store: MaintainedStore, group: Group, head: Head, archived_names: set[str]
) -> Iterator[Flaw]:
    for digest in head.archives:
        try:
            archived_names.update(name.file for name, _ in read_archive(store, group, digest))
        except archive.CorruptArchiveError as error:
            name = group.content("cold", digest)
            yield Flaw(group=group, kind="archive", name=name, what=str(error))


def _orphans(group: Group, listing: Listing, head: Head) -> Iterator[Flaw]:
    referenced = {*head.referenced_objects(group), *(entry.name for entry in head.unreferenced)}
    for name in listing.archives:
        if name not in referenced:
            what = "no HEAD refers to it; a repair recovers what counts of it"
            yield Flaw(group=group, kind="orphan", name=name, what=what)


def _segment_flaws(
    store: MaintainedStore, group: Group, name: SegmentName, keys: TrustedKeys
) -> Iterator[Flaw]:
    try:
        contents = opened_segment(name, store.read(name.name), keys)
    except ObjectNotFoundError:
        return  # collected since it was listed
    if isinstance(contents, str):
        yield Flaw(group=group, kind="segment", name=name.name, what=contents)
