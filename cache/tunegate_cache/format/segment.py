"""A batch of records as one immutable object, named by its content.

A signature follows the content in a skippable zstandard frame, so that readers without signatures
can read a signed segment. The digest in the name covers only the content.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import zstandard

from tunegate_cache.format import record_codec as wire
from tunegate_cache.format.decompression import SMALL_BYTES, DecompressionError, decompress
from tunegate_cache.format.names import SegmentName, parse_content, parse_segment
from tunegate_cache.format.record_codec import RefusedLine
from tunegate_cache.format.records import StoredRecord, TuningRecord
from tunegate_cache.format.signing import (
    KEY_ID_BYTES,
    SIGNATURE_BYTES,
    Signature,
    Signer,
    TrustedKeys,
)

_LEVEL = 6
MAX_LINES = 20_000
_FRAME = (0x184D2A5E).to_bytes(4, "little") + (KEY_ID_BYTES + SIGNATURE_BYTES).to_bytes(4, "little")
_TRAILER_BYTES = len(_FRAME) + KEY_ID_BYTES + SIGNATURE_BYTES


class SegmentContents(msgspec.Struct, frozen=True):
    """The usable records of a segment, and what became of the other lines."""

    stored: tuple[StoredRecord, ...]
    refused: tuple[RefusedLine, ...]

    @property
    def records(self) -> tuple[TuningRecord, ...]:
        return tuple(stored.record for stored in self.stored)


class CorruptSegmentError(Exception):
    """The bytes differ from their name, or are no segment."""


def pack_segment(records: Sequence[TuningRecord]) -> bytes:
    """Returns the body of a segment. Equal records in equal order give equal bytes."""
    return pack_lines(wire.encode_record(record) for record in records)


def pack_lines(lines: Iterable[bytes]) -> bytes:
    """Returns the body of a segment with these records as they were written."""
    return zstandard.ZstdCompressor(level=_LEVEL).compress(b"\n".join(lines))


def batches(records: Sequence[TuningRecord]) -> Iterator[tuple[TuningRecord, ...]]:
    """Yields the records in batches so small that no reader takes their segment for a decompression
    bomb."""
    batch: list[TuningRecord] = []
    size = 0
    for record in records:
        line_bytes = len(wire.encode_record(record)) + 1
        if batch and size + line_bytes > SMALL_BYTES:
            yield tuple(batch)
            batch, size = [], 0
        batch.append(record)
        size += line_bytes
    if batch:
        yield tuple(batch)


def segment_digest(body: bytes) -> str:
    """Returns the digest of the content, whoever signed it."""
    return hashlib.sha256(without_signature(body)).hexdigest()


def is_proven(name: str, body: bytes) -> bool:
    """Returns whether an object's name proves this content."""
    segment, content = parse_segment(name), parse_content(name)
    if segment is not None:
        return segment.digest == segment_digest(body)
    return content is not None and content.digest == hashlib.sha256(body).hexdigest()


def without_signature(body: bytes) -> bytes:
    return body[:-_TRAILER_BYTES] if _is_signed(body) else body


def append_signature(body: bytes, signature: Signature) -> bytes:
    """Returns the body of a segment with a signature behind it."""
    return body + _FRAME + bytes.fromhex(signature.key) + signature.value


def signed(name: SegmentName, body: bytes, signer: Signer | None) -> bytes:
    """Returns an unsigned body as this signer signs it for its place."""
    if signer is None:
        return body
    return append_signature(body, signer.sign(name.name, name.digest))


def signature_of(body: bytes) -> Signature | None:
    if not _is_signed(body):
        return None
    start = len(body) - KEY_ID_BYTES - SIGNATURE_BYTES
    return Signature(body[start : start + KEY_ID_BYTES].hex(), body[start + KEY_ID_BYTES :])


def is_trusted(name: SegmentName, body: bytes, keys: TrustedKeys) -> bool:
    """Returns whether the segment is signed as its zone requires."""
    return keys.accepts(name.zone, name.name, segment_digest(body), signature_of(body))


def unpack_segment(body: bytes, expected_digest: str) -> SegmentContents:
    """Returns the segment's content; a bad line costs only that line. Raises
    CorruptSegmentError."""
    parsed = list(lines(body, expected_digest))
    return SegmentContents(
        stored=tuple(line for line in parsed if isinstance(line, StoredRecord)),
        refused=tuple(line for line in parsed if isinstance(line, RefusedLine)),
    )


def lines(body: bytes, expected_digest: str) -> Iterator[StoredRecord | RefusedLine]:
    """Yields the lines one by one, for callers with little time: lines crafted to be slow take
    seconds. Raises CorruptSegmentError at once."""
    if segment_digest(body) != expected_digest:
        message = "the content is not what its name says"
        raise CorruptSegmentError(message)
    try:
        text = decompress(body)
    except DecompressionError as error:
        raise CorruptSegmentError(str(error)) from error
    if text.count(b"\n") >= MAX_LINES:
        raise CorruptSegmentError(f"holds more than {MAX_LINES} records")
    signature = signature_of(body)
    signer = "" if signature is None else signature.key
    return (parse_line(line, signer) for line in text.split(b"\n") if line)


def parse_line(line: bytes, signer: str) -> StoredRecord | RefusedLine:
    """Returns a line of JSON as a record."""
    decoded = wire.decode_records(line)
    return decoded if isinstance(decoded, RefusedLine) else StoredRecord(decoded, line, signer)


def _is_signed(body: bytes) -> bool:
    return len(body) > _TRAILER_BYTES and body[-_TRAILER_BYTES:].startswith(_FRAME)
