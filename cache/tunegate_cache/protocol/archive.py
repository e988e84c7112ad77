"""Whole segments in one object: nothing that was acknowledged exists only in an extract.

An archive begins with its directory, so that its content is known without reading all of it.
Signatures stay with their segments.
"""

import hashlib
from collections.abc import Iterator, Sequence
from itertools import accumulate

import msgspec

from tunegate_cache.format.names import Group, SegmentName
from tunegate_cache.format.validate import NOT_JSON
from tunegate_cache.stores.store import ObjectNotFoundError, ObjectStore

MAX_ARCHIVE_BYTES = 32 * 1024 * 1024
"""A compaction begins another archive beyond this size."""
_MAGIC = b"tunegate archive 1\n"
_LENGTH_BYTES = 8
_FIRST_READ_BYTES = 64 * 1024
_MAX_DIRECTORY_BYTES = 16 * 1024 * 1024
MISSING = "it is missing"


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """`file` is the segment's file name; `start` counts from the end of the directory."""

    file: str
    start: int
    size: int


class CorruptArchiveError(Exception):
    """The bytes differ from their name, or are no archive."""


def pack_archive(segments: Sequence[tuple[SegmentName, bytes]]) -> bytes:
    """Returns the archive; equal segments in equal order give equal bytes."""
    entries, start = [], 0
    for name, body in segments:
        entries.append(Entry(name.file, start, len(body)))
        start += len(body)
    directory = msgspec.json.encode(entries)
    length = len(directory).to_bytes(_LENGTH_BYTES, "big")
    return b"".join([_MAGIC, length, directory, *(body for _, body in segments)])


def unpack_archive(body: bytes, digest: str, group: Group) -> Iterator[tuple[SegmentName, bytes]]:
    """Yields every segment with its body, which its own name still has to prove. Raises
    CorruptArchiveError."""
    if hashlib.sha256(body).hexdigest() != digest:
        message = "the content is not what its name says"
        raise CorruptArchiveError(message)
    begin = len(_MAGIC) + _LENGTH_BYTES + _directory_bytes(body)
    for entry in _entries(body[len(_MAGIC) + _LENGTH_BYTES : begin]):
        name = group.segment(entry.file)
        if name is not None:
            yield name, body[begin + entry.start : begin + entry.start + entry.size]


def files(store: ObjectStore, name: str) -> frozenset[str]:
    """Returns the file names of an archive's segments, from its first bytes. Raises
    CorruptArchiveError, also for a missing one, and StoreUnavailableError."""
    begin = len(_MAGIC) + _LENGTH_BYTES
    try:
        first = store.read_part(name, 0, _FIRST_READ_BYTES)
        length = _directory_bytes(first)
        if len(first) < begin + length:
            first = store.read_part(name, 0, begin + length)
    except ObjectNotFoundError:
        raise CorruptArchiveError(MISSING) from None
    return frozenset(entry.file for entry in _entries(first[begin : begin + length]))


def _directory_bytes(first: bytes) -> int:
    begin = len(_MAGIC)
    length = int.from_bytes(first[begin : begin + _LENGTH_BYTES], "big")
    if not first.startswith(_MAGIC) or length > _MAX_DIRECTORY_BYTES:
        message = "not an archive"
        raise CorruptArchiveError(message)
    return length


def _entries(directory: bytes) -> list[Entry]:
    """Returns the entries. They follow each other: one segment under many names would be unpacked
    for hours."""
    try:
        entries = msgspec.json.decode(directory, type=list[Entry])
    except NOT_JSON as error:
        message = "its directory cannot be read"
        raise CorruptArchiveError(message) from error
    ends = accumulate((entry.size for entry in entries), initial=0)
    if any(entry.start != end or entry.size < 0 for entry, end in zip(entries, ends, strict=False)):
        message = "its segments do not follow each other"
        raise CorruptArchiveError(message)
    return entries
