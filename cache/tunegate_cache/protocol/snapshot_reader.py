"""Reads the few blocks of a snapshot that a run needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import msgspec

from tunegate_cache.format import pack
from tunegate_cache.format.pack_block import PackBlock
from tunegate_cache.format.records import TuningRecord, WorkloadKey, WorkloadShape
from tunegate_cache.format.revocation import is_revoked
from tunegate_cache.protocol.open_snapshot import OpenSnapshot
from tunegate_cache.protocol.target_requests import TargetRequests
from tunegate_cache.stores.store import ObjectStore

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
        wanted: Sequence[tuple[WorkloadKey, WorkloadShape]],
        requests: TargetRequests,
    ) -> Iterator[tuple[str, TuningRecord]]:
        """Yields all records of the wanted workloads, and of the nearest shapes of those that no
        snapshot has, with their zone. All of `wanted` have one target."""
        opened = list(snapshots)
        known = {key for key, _ in wanted if any(key.workload in s.block_of for s in opened)}
        asked = {}
        for snapshot in opened:
            blocks = self._blocks(snapshot, wanted, known)
            for span in _spans(snapshot, blocks):
                asked[span] = partial(self._store.read_part, span.name, span.start, span.size)
        by_name = {s.group.content("pack", p): s for s in opened for p in s.index.packs}
        for span, body in requests.answers(asked):
            snapshot = by_name[span.name]
            for record in _records(snapshot, span, body, requests):
                yield snapshot.group.zone, record

    def _blocks(
        self,
        snapshot: OpenSnapshot,
        wanted: Sequence[tuple[WorkloadKey, WorkloadShape]],
        known: set[WorkloadKey],
    ) -> list[PackBlock]:
        workloads: set[str] = set()
        for key, shape in wanted:
            if key in known:
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
            found = list(pack.records(body[start : start + block.size], block))
        except pack.CorruptBlockError as error:
            requests.trouble.corrupt(f"a block of {span.name}", str(error))
            continue
        for stored in found:
            is_of_target = stored.record.key.target == requests.target
            if is_of_target and not is_revoked(stored, snapshot.revoked):
                yield stored.record


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
