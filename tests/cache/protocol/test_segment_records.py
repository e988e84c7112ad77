from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cache.format.test_segment import KEYS, OURS
from tests.support.compacted_place import MAIN, NOBODY, Place, numbered
from tests.support.tuning_records import TARGET, hexdigest, make_key, make_record, make_shape
from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.format.head import Snapshot
from tunegate_cache.format.names import SegmentName, segment_name
from tunegate_cache.format.pack import CorruptBlockError
from tunegate_cache.format.record_codec import encode_record
from tunegate_cache.format.records import TuningRecord
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.format.segment import pack_segment, segment_digest, signed
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.format.snapshot_index import CorruptIndexError
from tunegate_cache.format.stored_record import StoredRecord
from tunegate_cache.protocol import snapshot_writer
from tunegate_cache.protocol.group_state import current_head
from tunegate_cache.protocol.hot_records import HotRecords
from tunegate_cache.protocol.read_trouble import ReadTrouble
from tunegate_cache.protocol.segment_records import usable_records
from tunegate_cache.protocol.snapshot_records import read_index, snapshot_records
from tunegate_cache.protocol.snapshot_writer import write_content, write_snapshot
from tunegate_cache.protocol.target_requests import TargetRequests
from tunegate_cache.stores.memory import MemoryStore

RECORDS = tuple(make_record(name, measured_at=100 + n) for n, name in enumerate("abc"))
BODY = pack_segment(RECORDS)


class Reader:
    """Reads segments for one target, and keeps what went wrong."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.statistics = CacheStatistics()
        self.trouble = ReadTrouble(self.statistics)
        self.requests = TargetRequests(
            target=TARGET, deadline=5.0, monotonic=clock, trouble=self.trouble.of(TARGET)
        )

    def read(
        self,
        body: bytes = BODY,
        *,
        keys: TrustedKeys = NOBODY,
        revoked: tuple[Revocation, ...] = (),
        name: SegmentName | None = None,
    ) -> list[TuningRecord]:
        name = name or name_of(body)
        return list(usable_records(name, body, keys, self.requests, revoked))


def name_of(body: bytes) -> SegmentName:
    digest = segment_digest(body)
    return segment_name("main", TARGET, milliseconds=1, writer="0" * 8, digest=digest)


def test_every_record_of_a_sound_segment_is_used() -> None:
    assert tuple(Reader().read()) == RECORDS


def test_a_damaged_segment_is_trouble_and_gives_nothing() -> None:
    reader = Reader()
    assert reader.read(b"garbage", name=name_of(BODY)) == []
    assert reader.statistics.corrupt_segments == 1


def test_a_segment_that_nobody_trusted_has_signed_gives_nothing() -> None:
    reader = Reader()
    assert reader.read(keys=KEYS) == []
    assert reader.statistics.untrusted == 1
    name = name_of(BODY)
    by_us = signed(BODY, OURS.sign(name.name, name.digest))
    assert tuple(Reader().read(by_us, keys=KEYS, name=name)) == RECORDS


def test_what_was_revoked_is_not_used_and_no_trouble() -> None:
    reader = Reader()
    assert reader.read(revoked=(Revocation(since=101),)) == [RECORDS[0]]
    assert reader.trouble.miss_reason("w", TARGET) == "absent"


def test_a_record_of_another_target_is_refused_in_a_segment_of_this_one() -> None:
    stray = make_record(key=make_key("stray", hexdigest("another target")))
    reader = Reader()
    assert reader.read(pack_segment([stray, RECORDS[0]])) == [RECORDS[0]]
    assert reader.statistics.refused == {"another target": 1}


def test_reading_ends_with_the_time() -> None:
    ticks = iter([0.0, 9.0, 9.0, 9.0])
    reader = Reader(lambda: next(ticks))
    assert reader.read() == list(RECORDS[:2])
    assert reader.trouble.miss_reason("w", TARGET) == "store-unavailable"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.publish(*numbered(3))
    place.compact()
    return place


def snapshot_of(place: Place) -> Snapshot:
    head = current_head(place.store, MAIN, NOBODY).head
    assert head is not None
    return head.snapshot


def test_every_record_of_a_snapshot_is_read(place: Place) -> None:
    found = [each.record for each in snapshot_records(place.store, MAIN, snapshot_of(place))]
    assert sorted(found, key=lambda r: r.key) == sorted(numbered(3), key=lambda r: r.key)


def test_a_pack_that_is_missing_or_damaged_is_a_corrupt_block(place: Place) -> None:
    snapshot = snapshot_of(place)
    pack = MAIN.content("pack", snapshot.packs[0])
    place.store.delete(pack)
    with pytest.raises(CorruptBlockError, match="a pack is missing"):
        list(snapshot_records(place.store, MAIN, snapshot))
    place.store.write(pack, b"garbage")
    with pytest.raises(CorruptBlockError, match="not what the index says"):
        list(snapshot_records(place.store, MAIN, snapshot))


def test_an_index_that_is_missing_is_a_corrupt_one(place: Place) -> None:
    with pytest.raises(CorruptIndexError, match="it is missing"):
        read_index(place.store, MAIN, "0" * 64)


def hot(*records: TuningRecord) -> HotRecords:
    found = HotRecords()
    found.add(StoredRecord(record, encode_record(record)) for record in records)
    return found


def test_a_snapshot_holds_every_workload_and_who_can_teach() -> None:
    store = MemoryStore()
    records = (make_record("a"), make_record("b", status="compile", run_nanoseconds=()))
    snapshot, workloads = write_snapshot(store, MAIN, hot(*records), 7, 1000)
    assert (snapshot.version, snapshot.at, workloads) == (7, 1000, 2)
    index = read_index(store, MAIN, snapshot.index)
    assert set(index.block_of()) == {hexdigest("a"), hexdigest("b")}
    assert index.neighbours(make_shape(extents=(32, 32))) == [hexdigest("a")]
    written = [stored.record for stored in snapshot_records(store, MAIN, snapshot)]
    assert sorted(written, key=lambda r: r.status) == sorted(records, key=lambda r: r.status)


def test_two_snapshots_of_the_same_records_differ_in_their_index_alone() -> None:
    store = MemoryStore()
    first, _ = write_snapshot(store, MAIN, hot(make_record()), 1, 1000)
    second, _ = write_snapshot(store, MAIN, hot(make_record()), 2, 1000)
    assert first.packs == second.packs
    assert first.index != second.index


def test_what_is_larger_than_a_pack_begins_another(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    records = [make_record(f"w{number}") for number in range(400)]
    one, _ = write_snapshot(store, MAIN, hot(*records), 1, 1000)
    monkeypatch.setattr(snapshot_writer, "_PACK_BYTES", 1)
    many, workloads = write_snapshot(store, MAIN, hot(*records), 2, 1000)
    assert (len(one.packs), workloads) == (1, 400)
    assert len(many.packs) == len(read_index(store, MAIN, many.index).blocks) > 1
    assert len(list(snapshot_records(store, MAIN, many))) == 400


def test_without_records_there_is_an_index_and_no_pack() -> None:
    store = MemoryStore()
    snapshot, workloads = write_snapshot(store, MAIN, hot(), 1, 1000)
    assert (snapshot.packs, workloads) == ((), 0)
    assert list(snapshot_records(store, MAIN, snapshot)) == []


def test_content_is_stored_under_its_digest() -> None:
    store = MemoryStore()
    digest = write_content(store, MAIN, "pack", b"body")
    assert digest == hashlib.sha256(b"body").hexdigest()
    assert store.read(MAIN.content("pack", digest)) == b"body"
