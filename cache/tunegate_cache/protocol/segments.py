"""The segments of a group that can be trusted, and the usable records of each."""

from collections.abc import Iterator

from tunegate_cache.format import segment
from tunegate_cache.format.names import Group, SegmentName, group_of
from tunegate_cache.format.record_codec import RefusedLine
from tunegate_cache.format.records import StoredRecord, TuningRecord
from tunegate_cache.format.revocation import SKEW_SECONDS, Revocation, counted
from tunegate_cache.format.segment import SegmentContents
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.protocol import archive
from tunegate_cache.protocol.target_requests import TargetRequests
from tunegate_cache.stores.store import ObjectNotFoundError, ObjectStore


def usable_records(
    name: SegmentName,
    body: bytes,
    keys: TrustedKeys,
    requests: TargetRequests,
    revoked: tuple[Revocation, ...],
) -> Iterator[TuningRecord]:
    """Yields as many as time allows. What must not be used is noted as trouble of the target."""
    try:
        lines = segment.lines(body, name.digest)
    except segment.CorruptSegmentError as error:
        requests.trouble.corrupt(f"segment {name.name}", str(error))
        return
    if not segment.is_trusted(name, body, keys):
        requests.trouble.note_unsigned(f"segment {name.name}")
        return
    for line in lines:
        stored = _accept(name, line, requests)
        if stored is not None:
            yield from requests.counted(stored, revoked)
        if requests.is_over():
            requests.trouble.note_late()
            return


def _accept(
    name: SegmentName, line: StoredRecord | RefusedLine, requests: TargetRequests
) -> StoredRecord | None:
    if isinstance(line, RefusedLine):
        requests.trouble.refused(line)
        return None
    if line.record.key.target == requests.target:
        return line
    if name.group == group_of(name.zone, requests.target):
        requests.trouble.refused(RefusedLine("another target", line.record.key.workload))
    return None


# Every trustworthy segment of a group, from archives and from its own object.


def opened_segment(name: SegmentName, body: bytes, keys: TrustedKeys) -> SegmentContents | str:
    """Returns the content of a segment, or why it must not be used."""
    try:
        contents = segment.unpack_segment(body, name.digest)
    except segment.CorruptSegmentError as error:
        return str(error)
    if segment.is_trusted(name, body, keys):
        return contents
    is_bad = is_damaged(name, body, keys)
    return "its signature is damaged" if is_bad else "not signed by a trusted key"


def is_damaged(name: SegmentName, body: bytes, keys: TrustedKeys) -> bool:
    """Returns whether this is not what the name says, or not what a trusted key has signed: whose
    it is cannot be told then."""
    signature = segment.signature_of(body)
    is_known = signature is not None and keys.has(name.zone, signature.key)
    is_other = is_known and not segment.is_trusted(name, body, keys)
    return is_other or not segment.is_proven(name.name, body)


def counted_records(
    contents: SegmentContents, revoked: tuple[Revocation, ...], now: int
) -> Iterator[TuningRecord]:
    """Yields the records as they count, without those that are revoked; `now` is in seconds since
    1970."""
    for stored in contents.stored:
        found = counted(stored, revoked, now + SKEW_SECONDS)
        if found is not None:
            yield found.record


def read_archive(
    store: ObjectStore, group: Group, digest: str
) -> Iterator[tuple[SegmentName, bytes]]:
    """Yields an archive's segments. Raises CorruptArchiveError, also for a missing one, and
    StoreUnavailableError."""
    try:
        body = store.read(group.content("cold", digest))
    except ObjectNotFoundError:
        raise archive.CorruptArchiveError(archive.MISSING) from None
    yield from archive.unpack_archive(body, digest, group)
