"""Records as bytes: one JSON object a line. Remote bytes are read here and nowhere else."""

from __future__ import annotations

import msgspec

from tunegate_cache.records import TuningRecord
from tunegate_cache.validate import refusal

MAX_RECORD_BYTES = 64 * 1024

_encoder = msgspec.json.Encoder(order="sorted")
_decoder = msgspec.json.Decoder(TuningRecord)


def encode(record: TuningRecord) -> bytes:
    return _encoder.encode(record)


def decode(line: bytes) -> TuningRecord | str:
    """A record, or the reason why this line is not one: unknown fields are tolerated, a newer
    version, a wrong type or a value out of range is not."""
    if len(line) > MAX_RECORD_BYTES:
        return "too large"
    try:
        record = _decoder.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return "not a record"
    return refusal(record) or record
