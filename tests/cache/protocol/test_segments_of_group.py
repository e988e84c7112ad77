from __future__ import annotations

from pathlib import Path

import pytest

from tests.cache.format.test_signing import KEYS, OURS, THEIRS
from tests.support.compacted_place import MAIN, NOBODY, Place
from tests.support.tuning_records import TARGET, make_record
from tunegate_cache.format.names import SegmentName, segment_name
from tunegate_cache.format.segment import (
    SegmentContents,
    is_trusted,
    pack_segment,
    segment_digest,
    signed,
)
from tunegate_cache.protocol.archive import CorruptArchiveError
from tunegate_cache.protocol.group_state import listing
from tunegate_cache.protocol.segments_of_group import archived, opened_segment
from tunegate_cache.stores.memory import MemoryStore

RECORD = make_record()
BODY = pack_segment([RECORD])
NAME = segment_name("main", TARGET, milliseconds=1, writer="0" * 8, digest=segment_digest(BODY))


def by(signer: object) -> bytes:
    return signed(BODY, signer.sign(NAME.name, NAME.digest))  # type: ignore[attr-defined]


def opened_records(name: SegmentName, body: bytes) -> list[object]:
    contents = opened_segment(name, body, KEYS)
    assert isinstance(contents, SegmentContents)
    return [stored.record for stored in contents.stored]


def test_a_segment_is_trusted_as_its_zone_demands() -> None:
    assert is_trusted(NAME, BODY, NOBODY)
    assert is_trusted(NAME, by(OURS), KEYS)
    assert not is_trusted(NAME, BODY, KEYS)
    assert not is_trusted(NAME, by(THEIRS), KEYS)


def test_a_segment_that_is_whole_and_trusted_is_opened() -> None:
    assert opened_records(NAME, by(OURS)) == [RECORD]
    assert opened_segment(NAME, BODY, KEYS) == "not signed by a trusted key"
    assert isinstance(opened_segment(NAME, b"garbage", NOBODY), str)


def test_an_archive_of_a_group_gives_its_segments(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.publish(RECORD)
    (name,) = listing(place.store, MAIN).segments
    body = place.store.read(name.name)
    place.compact()
    (stored,) = listing(place.store, MAIN).archives
    digest = stored.rpartition("/")[2].removesuffix(".arc")
    assert list(archived(place.store, MAIN, digest)) == [(name, body)]


def test_a_missing_archive_is_a_broken_one() -> None:
    with pytest.raises(CorruptArchiveError, match="it is missing"):
        list(archived(MemoryStore(), MAIN, "a" * 64))
