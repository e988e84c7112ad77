"""A batch of records as one immutable object, named by its content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import msgspec
import zstandard

from tunegate_cache import wire
from tunegate_cache.records import TuningRecord
from tunegate_cache.wire import Refused

_LEVEL = 6
_MAX_BYTES = 16 * 1024 * 1024
"""Of text: sixteen times what a run puts into one segment, and no reader's memory."""
_MAX_LINES = 20_000
_MAX_RATIO = 64
_SMALL = 1024 * 1024
"""Below this a high ratio is no bomb, only a short text that repeats itself."""
_CHUNK = 1024 * 1024
_MAX_WINDOW = 2**23


class Contents(msgspec.Struct, frozen=True):
    """The usable records of a segment, and what became of the other lines."""

    records: tuple[TuningRecord, ...]
    refused: tuple[Refused, ...]


class CorruptSegmentError(Exception):
    """The bytes are not what their name says, or not a segment at all."""


def pack(records: Sequence[TuningRecord]) -> bytes:
    """The body of a segment. Equal records in equal order give equal bytes."""
    text = b"\n".join(wire.encode(record) for record in records)
    return zstandard.ZstdCompressor(level=_LEVEL).compress(text)


def batches(records: Sequence[TuningRecord]) -> Iterator[tuple[TuningRecord, ...]]:
    """The records in pieces so small that no reader takes their segment for a bomb."""
    batch: list[TuningRecord] = []
    size = 0
    for record in records:
        line_bytes = len(wire.encode(record)) + 1
        if batch and size + line_bytes > _SMALL:
            yield tuple(batch)
            batch, size = [], 0
        batch.append(record)
        size += line_bytes
    if batch:
        yield tuple(batch)


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def unpack(body: bytes, expected_digest: str) -> Contents:
    """Raises CorruptSegmentError; a bad line inside a good segment costs that line only."""
    decoded = list(lines(body, expected_digest))
    return Contents(
        records=tuple(line for line in decoded if isinstance(line, TuningRecord)),
        refused=tuple(line for line in decoded if isinstance(line, Refused)),
    )


def lines(body: bytes, expected_digest: str) -> Iterator[TuningRecord | Refused]:
    """The same one by one, for who has little time: lines made to be slow take seconds. Raises
    CorruptSegmentError at once."""
    if digest(body) != expected_digest:
        message = "the content is not what its name says"
        raise CorruptSegmentError(message)
    text = _decompress(body)
    if text.count(b"\n") >= _MAX_LINES:
        message = f"holds more than {_MAX_LINES} records"
        raise CorruptSegmentError(message)
    return (wire.decode(line) for line in text.split(b"\n") if line)


def _decompress(body: bytes) -> bytes:
    limit = min(_MAX_BYTES, max(_SMALL, _MAX_RATIO * len(body)))
    text = bytearray()
    try:
        with zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).stream_reader(body) as reader:
            while len(text) <= limit and (chunk := reader.read(_CHUNK)):
                text += chunk
    except zstandard.ZstdError as error:
        message = "not zstandard data"
        raise CorruptSegmentError(message) from error
    if len(text) > limit:
        message = "unpacks to more than is allowed"
        raise CorruptSegmentError(message)
    return bytes(text)
