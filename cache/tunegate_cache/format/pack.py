"""The best records of many workloads in compressed blocks, each of which can be read alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import msgspec
import zstandard

from tunegate_cache.format import segment
from tunegate_cache.format.decompression import DecompressionError, decompress
from tunegate_cache.format.records import StoredRecord

_BLOCK_BYTES = 64 * 1024
"""The bytes of text in one block. A block is one range request, and most of its content was not
asked for."""
_LEVEL = 9
_NOBODY = b"-"


class CorruptBlockError(Exception):
    """The bytes differ from the index, or are no block."""


def blocks(
    workloads: Iterable[tuple[str, list[StoredRecord]]],
) -> Iterator[tuple[list[str], bytes]]:
    """Yields the workloads and bytes of each block. All records of a workload are in one block."""
    names: list[str] = []
    lines: list[bytes] = []
    size = 0
    for workload, records in workloads:
        text = [_line(stored) for stored in records]
        length = sum(map(len, text))
        if names and size + length > _BLOCK_BYTES:
            yield names, _compress(lines)
            names, lines, size = [], [], 0
        names.append(workload)
        lines += text
        size += length
    if names:
        yield names, _compress(lines)


def describe_block(pack: int, start: int, body: bytes) -> PackBlock:
    return PackBlock(pack, start, len(body), hashlib.sha256(body).digest())


def records(body: bytes, block: PackBlock) -> Iterator[StoredRecord]:
    """Yields the block's records, without invalid lines. Raises CorruptBlockError."""
    if hashlib.sha256(body).digest() != block.digest:
        message = "a block is not what the index says"
        raise CorruptBlockError(message)
    try:
        text = decompress(body)
    except DecompressionError as error:
        raise CorruptBlockError(str(error)) from error
    if text.count(b"\n") >= segment.MAX_LINES:
        raise CorruptBlockError(f"a block holds more than {segment.MAX_LINES} records")
    for line in text.split(b"\n"):
        signer, _, record = line.partition(b" ")
        by = "" if signer == _NOBODY else signer.decode("ascii", "replace")
        parsed = segment.parse_line(record, by)
        if isinstance(parsed, StoredRecord):
            yield parsed


def _line(stored: StoredRecord) -> bytes:
    return (stored.signer.encode() or _NOBODY) + b" " + stored.text


def _compress(lines: list[bytes]) -> bytes:
    return zstandard.ZstdCompressor(level=_LEVEL).compress(b"\n".join(lines))


# The position of a block of records in a pack.


class PackBlock(msgspec.Struct, frozen=True, array_like=True):
    """The position of a block in its pack, and the digest of its bytes: no name proves a part of a
    pack."""

    pack: int
    start: int
    size: int
    digest: bytes
