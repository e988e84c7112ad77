"""Every trustworthy segment of a group, from archives and from its own object."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate_cache.format import segment
from tunegate_cache.format.names import Group, SegmentName
from tunegate_cache.format.segment import SegmentContents
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.protocol import archive
from tunegate_cache.stores.store import ObjectNotFoundError, ObjectStore


def opened_segment(name: SegmentName, body: bytes, keys: TrustedKeys) -> SegmentContents | str:
    """Returns the content of a segment, or why it must not be used."""
    try:
        contents = segment.unpack_segment(body, name.digest)
    except segment.CorruptSegmentError as error:
        return str(error)
    return contents if segment.is_trusted(name, body, keys) else "not signed by a trusted key"


def archived(store: ObjectStore, group: Group, digest: str) -> Iterator[tuple[SegmentName, bytes]]:
    """Yields an archive's segments. Raises CorruptArchiveError, also for a missing one, and
    StoreUnavailableError."""
    try:
        body = store.read(group.content("cold", digest))
    except ObjectNotFoundError:
        message = "it is missing"
        raise archive.CorruptArchiveError(message) from None
    yield from archive.unpack_archive(body, digest, group)
