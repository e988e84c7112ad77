"""All records of a snapshot, one block after another."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate_cache.format import pack, snapshot_index
from tunegate_cache.format.head import Snapshot
from tunegate_cache.format.names import Group
from tunegate_cache.format.snapshot_index import SnapshotIndex
from tunegate_cache.format.stored_record import StoredRecord
from tunegate_cache.stores.store import ObjectNotFoundError, ObjectStore


def read_index(store: ObjectStore, group: Group, digest: str) -> SnapshotIndex:
    """Reads an index. Raises CorruptIndexError, also for a missing one, and
    StoreUnavailableError."""
    try:
        body = store.read(group.content("idx", digest))
    except ObjectNotFoundError:
        message = "it is missing"
        raise snapshot_index.CorruptIndexError(message) from None
    return snapshot_index.decode_index(body, digest)


def snapshot_records(
    store: ObjectStore, group: Group, snapshot: Snapshot
) -> Iterator[StoredRecord]:
    """Yields the records. Raises CorruptIndexError, CorruptBlockError and StoreUnavailableError."""
    index = read_index(store, group, snapshot.index)
    bodies: dict[int, bytes] = {}
    for block in index.blocks:
        if block.pack not in bodies:
            try:
                name = group.content("pack", index.packs[block.pack])
                bodies = {block.pack: store.read(name)}
            except ObjectNotFoundError:
                message = "a pack is missing"
                raise pack.CorruptBlockError(message) from None
        body = bodies[block.pack][block.start : block.start + block.size]
        yield from pack.records(body, block)
