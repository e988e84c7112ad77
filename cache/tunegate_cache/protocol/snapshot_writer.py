"""Writes the best records of a group as packs with an index."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from tunegate_cache.format import pack, snapshot_index
from tunegate_cache.format.head import Snapshot
from tunegate_cache.format.names import ContentKind, Group
from tunegate_cache.format.pack_block import PackBlock
from tunegate_cache.format.records import WorkloadShape
from tunegate_cache.format.snapshot_index import IndexRow, SnapshotIndex
from tunegate_cache.format.stored_record import StoredRecord
from tunegate_cache.protocol.hot_records import HotRecords, shape_to_teach
from tunegate_cache.stores.store import ObjectStore

_PACK_BYTES = 32 * 1024 * 1024

_Shapes = dict[str, WorkloadShape | None]


def write_snapshot(
    store: ObjectStore, group: Group, hot: HotRecords, version: int, now: int
) -> tuple[Snapshot, int]:
    """Returns the snapshot, and how many workloads it holds. Raises StoreUnavailableError."""
    packs: list[str] = []
    content = bytearray()
    blocks: list[PackBlock] = []
    rows: list[IndexRow] = []
    shapes: _Shapes = {}
    for workloads, body in pack.blocks(_note_shapes(hot, shapes)):
        if content and len(content) + len(body) > _PACK_BYTES:
            packs.append(write_content(store, group, "pack", bytes(content)))
            content = bytearray()
        rows += [IndexRow(bytes.fromhex(workload), len(blocks)) for workload in workloads]
        blocks.append(pack.describe_block(len(packs), len(content), body))
        content += body
    if content:
        packs.append(write_content(store, group, "pack", bytes(content)))
    index = SnapshotIndex(
        serial=version,
        packs=tuple(packs),
        blocks=tuple(blocks),
        rows=tuple(rows),
        skeletons=snapshot_index.skeletons(
            (number, shapes[row.workload.hex()]) for number, row in enumerate(rows)
        ),
    )
    written = write_content(store, group, "idx", snapshot_index.encode_index(index))
    return Snapshot(version=version, index=written, packs=tuple(packs), at=now), len(rows)


def write_content(store: ObjectStore, group: Group, kind: ContentKind, body: bytes) -> str:
    """Stores an object under its digest, and returns the digest."""
    digest = hashlib.sha256(body).hexdigest()
    store.write(group.content(kind, digest), body)
    return digest


def _note_shapes(hot: HotRecords, shapes: _Shapes) -> Iterator[tuple[str, list[StoredRecord]]]:
    """Yields the workloads of `hot`, and notes the shape of each in passing."""
    for workload, records in hot.workloads():
        shapes[workload] = shape_to_teach(records)
        yield workload, records
