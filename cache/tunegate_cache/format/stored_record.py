"""A record as a segment or a pack holds it."""

from __future__ import annotations

import msgspec

from tunegate_cache.format.records import TuningRecord


class StoredRecord(msgspec.Struct, frozen=True):
    """`text` is the line as it was written: later versions may say more than this one knows.
    `signer` is the id of the key that signed the segment it came in, or empty."""

    record: TuningRecord
    text: bytes
    signer: str = ""
