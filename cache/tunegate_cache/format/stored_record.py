"""A record as it is stored in a segment or a pack."""

from __future__ import annotations

import msgspec

from tunegate_cache.format.records import TuningRecord


class StoredRecord(msgspec.Struct, frozen=True):
    """`text` is the line as written: later versions may say more than this one knows. `signer` is
    the id of the key that signed its segment, or empty."""

    record: TuningRecord
    text: bytes
    signer: str = ""
