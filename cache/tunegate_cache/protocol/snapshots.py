"""Snapshots of a group: the few blocks that a run reads, all records, and how they are written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec

from tunegate_cache.format import pack, snapshot_index
from tunegate_cache.format.head import Snapshot
from tunegate_cache.format.names import ContentKind, Group
from tunegate_cache.format.pack import PackBlock
from tunegate_cache.format.records import StoredRecord, TuningRecord, WorkloadKey, WorkloadShape
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.format.snapshot_index import IndexRow, SnapshotIndex
from tunegate_cache.protocol.hot_records import HotRecords, shape_to_teach
from tunegate_cache.protocol.target_requests import TargetRequests
from tunegate_cache.stores.store import ObjectConflictError, ObjectNotFoundError, ObjectStore

_MAX_REQUESTS = 32
_FIRST_GAP_BYTES = 64 * 1024
_MAX_BYTES = 8 * 1024 * 1024


class _Span(msgspec.Struct, frozen=True):
    """Neighbouring blocks of one pack, read with one request."""

    name: str
    start: int
    size: int
    blocks: tuple[PackBlock, ...]


class SnapshotReader:
    """Reads blocks, each once."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._read: set[tuple[str, int]] = set()

    def read(
        self,
        snapshots: Iterable[OpenSnapshot],
        workloads: Sequence[tuple[WorkloadKey, WorkloadShape]],
        requests: TargetRequests,
    ) -> Iterator[tuple[str, TuningRecord]]:
        """Yields all records of the wanted workloads, and of the nearest shapes of those that no
        snapshot has, with their zone. All of `workloads` have one target."""
        opened = list(snapshots)
        keys = {key for key, _ in workloads if any(key.workload in s.block_of for s in opened)}
        parts = {}
        for snapshot in opened:
            blocks = self._blocks(snapshot, workloads, keys)
            for span in _spans(snapshot, blocks):
                parts[span] = partial(self._store.read_part, span.name, span.start, span.size)
        by_name = {s.group.content("pack", p): s for s in opened for p in s.index.packs}
        for span, body in requests.answers(parts):
            snapshot = by_name[span.name]
            for record in _records(snapshot, span, body, requests):
                yield snapshot.group.zone, record

    def _blocks(
        self,
        snapshot: OpenSnapshot,
        requested: Sequence[tuple[WorkloadKey, WorkloadShape]],
        present_keys: set[WorkloadKey],
    ) -> list[PackBlock]:
        workloads: set[str] = set()
        for key, shape in requested:
            if key in present_keys:
                workloads.add(key.workload)
            else:
                workloads.update(snapshot.index.neighbours(shape))
        numbers = {snapshot.block_of[w] for w in workloads if w in snapshot.block_of}
        place = snapshot.group.prefix
        new = sorted(number for number in numbers if (place, number) not in self._read)
        self._read.update((place, number) for number in new)
        return [snapshot.index.blocks[number] for number in new]


def _records(
    snapshot: OpenSnapshot, span: _Span, body: bytes, requests: TargetRequests
) -> Iterator[TuningRecord]:
    for block in span.blocks:
        start = block.start - span.start
        try:
            for stored in pack.records(body[start : start + block.size], block):
                if requests.is_over():
                    requests.trouble.note_late()
                    return
                is_wanted = stored.record.key.target == requests.target
                if is_wanted and snapshot.keys.has(snapshot.group.zone, stored.signer):
                    yield from requests.counted(stored, snapshot.revoked)
        except pack.CorruptBlockError as error:
            requests.trouble.corrupt(f"a block of {span.name}", str(error))


def _spans(snapshot: OpenSnapshot, blocks: Sequence[PackBlock]) -> list[_Span]:
    """Merges blocks into spans, for few requests rather than few bytes: blocks with a small gap
    between them are read together, and the gap grows until the requests are few."""
    gap = _FIRST_GAP_BYTES
    spans = _merge_spans(snapshot, blocks, gap)
    while len(spans) > _MAX_REQUESTS and gap < _MAX_BYTES:
        gap *= 2
        spans = _merge_spans(snapshot, blocks, gap)
    return spans


def _merge_spans(snapshot: OpenSnapshot, blocks: Sequence[PackBlock], gap: int) -> list[_Span]:
    groups: list[list[PackBlock]] = []
    for block in sorted(blocks, key=lambda b: (b.pack, b.start)):
        last = groups[-1] if groups else None
        if last is not None and _is_near(last, block, gap):
            last.append(block)
        else:
            groups.append([block])
    return [
        _Span(
            snapshot.group.content("pack", snapshot.index.packs[group[0].pack]),
            group[0].start,
            group[-1].start + group[-1].size - group[0].start,
            tuple(group),
        )
        for group in groups
    ]


def _is_near(group: Sequence[PackBlock], block: PackBlock, gap: int) -> bool:
    first, last = group[0], group[-1]
    return (
        block.pack == last.pack
        and block.start - (last.start + last.size) <= gap
        and block.start + block.size - first.start <= _MAX_BYTES
    )


# An index of a group, ready for look-ups of a workload's blocks.


class OpenSnapshot(msgspec.Struct, frozen=True):
    """An index, ready for look-ups."""

    group: Group
    index: SnapshotIndex
    block_of: Mapping[str, int]
    revoked: tuple[Revocation, ...]
    keys: TrustedKeys


# All records of a snapshot, one block after another.


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
    store: ObjectStore, group: Group, digest: str, keys: TrustedKeys
) -> Iterator[StoredRecord]:
    """Yields the records of the snapshot with this index, without those of keys that are trusted no
    longer. Raises CorruptIndexError, CorruptBlockError and StoreUnavailableError."""
    index = read_index(store, group, digest)
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
        yield from (s for s in pack.records(body, block) if keys.has(group.zone, s.signer))


def snapshot_problem(store: ObjectStore, group: Group, digest: str) -> str:
    """Returns why the snapshot with this index cannot be read as a whole, '' if it can. Raises
    StoreUnavailableError."""
    try:
        for _ in snapshot_records(store, group, digest, TrustedKeys()):
            pass
    except (snapshot_index.CorruptIndexError, pack.CorruptBlockError) as error:
        return str(error)
    return ""


# Writes the best records of a group as packs with an index.

_PACK_BYTES = 32 * 1024 * 1024
_SPARE = b"\n"

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
    digest = write_content(store, group, "idx", snapshot_index.encode_index(index))
    return Snapshot(version=version, index=digest, packs=tuple(packs), at=now), len(rows)


def write_content(store: ObjectStore, group: Group, kind: ContentKind, body: bytes) -> str:
    """Stores an object under its digest, and returns the digest. A damaged one may have that name
    already, and cannot be replaced: no reader minds a byte behind a pack or an archive."""
    digest = hashlib.sha256(body).hexdigest()
    try:
        store.write(group.content(kind, digest), body)
    except ObjectConflictError:
        if kind == "idx":
            raise
        digest = hashlib.sha256(body + _SPARE).hexdigest()
        store.write(group.content(kind, digest), body + _SPARE)
    return digest


def _note_shapes(hot: HotRecords, shapes: _Shapes) -> Iterator[tuple[str, list[StoredRecord]]]:
    """Yields the workloads of `hot`, and notes the shape of each in passing."""
    for workload, records in hot.workloads():
        shapes[workload] = shape_to_teach(records)
        yield workload, records
