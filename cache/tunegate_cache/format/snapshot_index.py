"""The index of a snapshot: the block and pack of each workload, and the workloads of each
skeleton."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec
import zstandard

from tunegate_cache.format.decompression import DecompressionError, decompress
from tunegate_cache.format.nearest import nearest_neighbours
from tunegate_cache.format.pack import PackBlock
from tunegate_cache.format.records import WorkloadShape
from tunegate_cache.format.validate import NOT_JSON

_LEVEL = 9
_VERSION = 1
_MAX_BYTES = 64 * 1024 * 1024
"""The text of an index of 1.7 million workloads: a reader needs a second for it, and 0.8 GB."""
_MAX_PLACE = 2**40
"""The largest offset of a block in its pack, and its largest size: file systems take none
larger."""


class CorruptIndexError(Exception):
    """The bytes differ from their name, or are no index."""


class IndexRow(msgspec.Struct, frozen=True, array_like=True):
    workload: bytes
    block: int


class Member(msgspec.Struct, frozen=True, array_like=True):
    """A workload of a skeleton with a schedule to transfer."""

    extents: tuple[int, ...]
    row: int


class SnapshotIndex(msgspec.Struct, frozen=True, kw_only=True):
    """`packs` are digests, which blocks refer to by index; `serial` makes every index, and with it
    every HEAD, unique."""

    v: int = _VERSION
    serial: int
    packs: tuple[str, ...]
    blocks: tuple[PackBlock, ...]
    rows: tuple[IndexRow, ...]
    skeletons: dict[str, tuple[Member, ...]]

    def block_of(self) -> Mapping[str, int]:
        """The number of every workload's block."""
        return {row.workload.hex(): row.block for row in self.rows}

    def neighbours(self, shape: WorkloadShape) -> Sequence[str]:
        """Returns the workloads of the nearest shapes with this skeleton, nearest first."""
        members = self.skeletons.get(shape.skeleton, ())
        candidates = ((self.rows[m.row].workload.hex(), m.extents) for m in members)
        return [workload for _, workload in nearest_neighbours(shape.extents, candidates)]


def encode_index(index: SnapshotIndex) -> bytes:
    return zstandard.ZstdCompressor(level=_LEVEL).compress(msgspec.msgpack.encode(index))


def decode_index(body: bytes, digest: str) -> SnapshotIndex:
    """Decodes an index. Raises CorruptIndexError."""
    if hashlib.sha256(body).hexdigest() != digest:
        message = "the content is not what its name says"
        raise CorruptIndexError(message)
    try:
        index = msgspec.msgpack.decode(decompress(body, _MAX_BYTES), type=SnapshotIndex)
    except (DecompressionError, *NOT_JSON) as error:
        message = "not an index"
        raise CorruptIndexError(message) from error
    if index.v > _VERSION:
        message = "of a later version"
        raise CorruptIndexError(message)
    if not _is_consistent(index):
        message = "it points outside of itself"
        raise CorruptIndexError(message)
    return index


def skeletons(
    workloads: Iterable[tuple[int, WorkloadShape | None]],
) -> dict[str, tuple[Member, ...]]:
    """Returns the members by skeleton, from (row, shape) pairs; no shape means nothing to
    transfer."""
    members_of: dict[str, list[Member]] = {}
    for row, shape in workloads:
        if shape is not None:
            members_of.setdefault(shape.skeleton, []).append(Member(shape.extents, row))
    return {skeleton: tuple(members) for skeleton, members in sorted(members_of.items())}


def _is_consistent(index: SnapshotIndex) -> bool:
    return (
        all(0 <= block.pack < len(index.packs) for block in index.blocks)
        # One block under many numbers would be unpacked for hours.
        and all(
            (first.pack, first.start + first.size - 1) < (then.pack, then.start)
            for first, then in pairwise(index.blocks)
        )
        and all(
            0 <= each <= _MAX_PLACE for block in index.blocks for each in (block.start, block.size)
        )
        and all(0 <= row.block < len(index.blocks) for row in index.rows)
        and all(
            0 <= member.row < len(index.rows) and all(extent > 0 for extent in member.extents)
            for members in index.skeletons.values()
            for member in members
        )
    )
