"""A batch of records as one immutable object, named by its content."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec
import zstandard

from tunegate_cache import wire
from tunegate_cache.records import TuningRecord

_LEVEL = 6
_MAX_BYTES = 256 * 1024 * 1024
_MAX_RATIO = 64
_SMALL = 1024 * 1024
"""Below this a high ratio is no bomb, only a short text that repeats itself."""


class Contents(msgspec.Struct, frozen=True):
    """The usable records of a segment, and how many lines were refused."""

    records: tuple[TuningRecord, ...]
    refused: int


class CorruptSegmentError(Exception):
    """The bytes are not what their name says, or not a segment at all."""


def pack(records: Sequence[TuningRecord]) -> bytes:
    """The body of a segment. Equal records in equal order give equal bytes."""
    text = b"\n".join(wire.encode(record) for record in records)
    return zstandard.ZstdCompressor(level=_LEVEL).compress(text)


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def unpack(body: bytes, expected_digest: str) -> Contents:
    """Raises CorruptSegmentError; a bad line inside a good segment costs that line only."""
    if digest(body) != expected_digest:
        message = "the content is not what its name says"
        raise CorruptSegmentError(message)
    decoded = [wire.decode(line) for line in _decompress(body).split(b"\n") if line]
    records = tuple(record for record in decoded if isinstance(record, TuningRecord))
    return Contents(records, len(decoded) - len(records))


def _decompress(body: bytes) -> bytes:
    limit = min(_MAX_BYTES, max(_SMALL, _MAX_RATIO * len(body)))
    try:
        with zstandard.ZstdDecompressor().stream_reader(body) as reader:
            text = reader.read(limit + 1)
    except zstandard.ZstdError as error:
        message = "not zstandard data"
        raise CorruptSegmentError(message) from error
    if len(text) > limit:
        message = "unpacks to more than is allowed"
        raise CorruptSegmentError(message)
    return text
