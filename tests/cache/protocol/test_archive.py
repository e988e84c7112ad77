from __future__ import annotations

import hashlib

import pytest

from tests.support.compacted_place import MAIN
from tests.support.tuning_records import TARGET, make_record
from tunegate_cache.format.names import SegmentName, segment_name
from tunegate_cache.format.segment import pack_segment, segment_digest
from tunegate_cache.protocol.archive import CorruptArchiveError, files, pack_archive, unpack_archive
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.store import ObjectNotFoundError


def segment(workload: str) -> tuple[SegmentName, bytes]:
    body = pack_segment([make_record(workload)])
    name = segment_name("main", TARGET, milliseconds=1, writer="0" * 8, digest=segment_digest(body))
    return name, body


SEGMENTS = [segment("a"), segment("b")]
ARCHIVE = pack_archive(SEGMENTS)
DIGEST = hashlib.sha256(ARCHIVE).hexdigest()


def in_store(body: bytes) -> MemoryStore:
    store = MemoryStore()
    store.write("archive", body)
    return store


def test_an_archive_gives_back_every_segment_byte_for_byte() -> None:
    assert list(unpack_archive(ARCHIVE, DIGEST, MAIN)) == SEGMENTS
    assert pack_archive(SEGMENTS) == ARCHIVE


def test_what_an_archive_holds_is_seen_in_its_first_bytes() -> None:
    assert files(in_store(ARCHIVE), "archive") == {name.file for name, _ in SEGMENTS}


def test_a_directory_that_is_longer_than_the_first_read_is_read_whole() -> None:
    many = [segment(f"w{number}") for number in range(700)]
    body = pack_archive(many)
    assert body.index(b"]]") > 64 * 1024
    assert files(in_store(body), "archive") == {name.file for name, _ in many}


def test_content_that_its_name_does_not_prove_is_refused() -> None:
    with pytest.raises(CorruptArchiveError, match="not what its name says"):
        list(unpack_archive(ARCHIVE + b"x", DIGEST, MAIN))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not an archive"),
        (b"tunegate archive 1\n" + b"\xff" * 8, "not an archive"),
        (b"tunegate archive 1\n" + bytes(7) + b"\x02[1", "directory cannot be read"),
    ],
)
def test_what_is_no_archive_is_refused_in_whole_and_in_part(body: bytes, said: str) -> None:
    with pytest.raises(CorruptArchiveError, match=said):
        list(unpack_archive(body, hashlib.sha256(body).hexdigest(), MAIN))
    with pytest.raises(CorruptArchiveError, match=said):
        files(in_store(body), "archive")


def test_a_missing_archive_is_told_by_the_store() -> None:
    with pytest.raises(ObjectNotFoundError):
        files(MemoryStore(), "archive")
