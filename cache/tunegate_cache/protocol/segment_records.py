"""The usable records of one segment."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate_cache.format import names, segment
from tunegate_cache.format.names import SegmentName
from tunegate_cache.format.records import TuningRecord
from tunegate_cache.format.refused_line import RefusedLine
from tunegate_cache.format.revocation import Revocation, is_revoked
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.format.stored_record import StoredRecord
from tunegate_cache.protocol.target_requests import TargetRequests


def usable_records(
    name: SegmentName,
    body: bytes,
    keys: TrustedKeys,
    requests: TargetRequests,
    revoked: tuple[Revocation, ...] = (),
) -> Iterator[TuningRecord]:
    """Yields as many as time allows. What must not be used is noted as trouble of the target."""
    try:
        lines = segment.lines(body, name.digest)
    except segment.CorruptSegmentError as error:
        requests.trouble.corrupt(f"segment {name.name}", str(error))
        return
    if not segment.is_trusted(name, body, keys):
        requests.trouble.unsigned(f"segment {name.name}")
        return
    for line in lines:
        record = _accept(name, line, requests)
        if record is not None and not is_revoked(record, revoked):
            yield record.record
        if requests.is_over():
            requests.trouble.late()
            return


def _accept(
    name: SegmentName, line: StoredRecord | RefusedLine, requests: TargetRequests
) -> StoredRecord | None:
    if isinstance(line, RefusedLine):
        requests.trouble.refused(line)
        return None
    if line.record.key.target == requests.target:
        return line
    if names.is_of_target(name, requests.target):
        requests.trouble.refused(RefusedLine("another target", line.record.key.workload))
    return None
