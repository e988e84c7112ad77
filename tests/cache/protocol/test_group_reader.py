"""Objects of a zone that are read, and those that are counted instead."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.cache.format.test_segment import KEYS, OURS, THEIRS
from tests.support.compacted_place import MAIN, NOBODY, Place, numbered
from tests.support.present import present
from tests.support.tuning_records import TARGET, hexdigest, make_key, make_record, make_shape
from tunegate_cache.format import names, segment
from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.format.head import Snapshot, head_digest
from tunegate_cache.format.names import SegmentName, group_of, segment_name
from tunegate_cache.format.pack import CorruptBlockError
from tunegate_cache.format.record_codec import encode_record
from tunegate_cache.format.records import StoredRecord, TuningRecord
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.format.snapshot_index import CorruptIndexError
from tunegate_cache.protocol import snapshots
from tunegate_cache.protocol.archive import CorruptArchiveError
from tunegate_cache.protocol.group_reader import GroupReader
from tunegate_cache.protocol.group_state import current_head, groups, listing
from tunegate_cache.protocol.hot_records import HotRecords
from tunegate_cache.protocol.segments import opened_segment, read_archive, usable_records
from tunegate_cache.protocol.target_requests import ReadTrouble, StaleListingError, TargetRequests
from tunegate_cache.protocol.trust import Trust
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.store import ObjectNotFoundError, StoreUnavailableError


class Gossip(MemoryStore):
    """A store that lists everything it has, whatever it is asked."""

    def names(self, prefix: str) -> Sequence[str]:
        return super().names("")


def zero() -> float:
    return 0.0


def put(store: MemoryStore, zone: str, target: str, *records: TuningRecord) -> None:
    body = segment.pack_segment(records)
    name = names.segment_name(
        zone, target, milliseconds=1, writer="0" * 8, digest=segment.segment_digest(body)
    )
    store.write(name.name, body)


class Reading:
    """One read of `main`, and what was noted."""

    def __init__(
        self, store: MemoryStore, deadline: float = 5.0, monotonic: Callable[[], float] = zero
    ) -> None:
        self.statistics = CacheStatistics()
        self.trouble = ReadTrouble(self.statistics)
        asked = requests(self.trouble, monotonic, deadline)
        found = GroupReader(store, ("main",), Trust()).read(asked).records
        self.records = tuple(record for zone, record in found if zone == "main")


def test_a_store_that_lists_other_zones_and_targets_gets_none_of_them_in() -> None:
    store = Gossip()
    put(store, "main", TARGET, make_record())
    put(store, "pr/o/r/7", TARGET, make_record("poison"))
    put(store, "main", hexdigest("another"), make_record("stray"))
    assert Reading(store).records == (make_record(),)


def test_a_record_of_another_target_is_refused_and_counted() -> None:
    store = MemoryStore()
    stray = make_record("stray", key=make_key("stray", hexdigest("another")))
    put(store, "main", TARGET, stray, make_record())
    reading = Reading(store)
    assert reading.records == (make_record(),)
    assert reading.statistics.refused == {"another target": 1}
    assert reading.trouble.miss_reason(stray.key.workload, TARGET) == "rejected"


def test_what_unpacks_slowly_ends_with_the_time_and_keeps_what_is_good() -> None:
    store = MemoryStore()
    put(store, "main", TARGET, *(make_record(run_nanoseconds=(ns,)) for ns in range(1, 900)))
    seconds = itertools.count()
    reading = Reading(store, 100.0, lambda: float(next(seconds)))
    assert 50 < len(reading.records) < 100
    assert reading.statistics.notes == ("cache: not everything could be read in time",)
    assert reading.trouble.miss_reason("w", TARGET) == "store-unavailable"


def test_what_came_in_time_is_left_when_the_time_is_over() -> None:
    store = MemoryStore()
    for number in range(50):
        put(store, "main", TARGET, make_record(run_nanoseconds=(number + 1,)))
    seconds = itertools.count()
    assert len(Reading(store, 40.0, lambda: float(next(seconds))).records) < 30


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.publish(make_record())
    return place


def test_objects_are_listed_by_kind(place: Place) -> None:
    place.compact()
    place.publish(make_record("later"))
    found = listing(place.store, MAIN)
    counted = (found.segments, found.packs, found.indexes, found.archives)
    assert [len(names) for names in counted] == [2, 1, 1, 1]
    assert all(name.group == MAIN for name in found.segments)


def test_what_is_of_another_group_or_no_object_of_ours_is_not_listed(place: Place) -> None:
    place.store.write(f"{MAIN.prefix}notes.txt", b"")
    (segment,) = listing(place.store, MAIN).segments
    other = group_of("team", TARGET)
    place.store.write(segment.name.replace("/main/", "/team/"), b"")
    assert listing(place.store, MAIN).segments == (segment,)
    assert len(listing(place.store, other).segments) == 1
    assert groups(place.store) == (MAIN, other)
    assert groups(place.store, "team") == (other,)
    assert groups(place.store, "absent") == ()


def test_a_group_of_which_only_its_head_is_left_is_a_group(place: Place) -> None:
    place.compact()
    head = place.store.read_pointer(MAIN.head)
    store = Place(Path("/nowhere")).store
    store.write(MAIN.head, head.body)
    assert groups(store) == (MAIN,)


def test_without_a_compaction_there_is_no_head(place: Place) -> None:
    found = current_head(place.store, MAIN, NOBODY)
    assert (found.head, found.tag, found.problem) == (None, None, "")


def test_the_head_comes_with_its_tag_and_its_digest(place: Place) -> None:
    place.compact()
    pointer = place.store.read_pointer(MAIN.head)
    found = current_head(place.store, MAIN, NOBODY)
    assert present(found.head).version == 1
    assert (found.tag, found.digest) == (pointer.tag, head_digest(pointer.body))


def test_a_head_that_is_not_trusted_can_be_replaced_and_one_of_a_later_version_must_not(
    place: Place,
) -> None:
    place.compact()
    refused = current_head(place.store, MAIN, KEYS)
    assert (refused.head, refused.is_later) == (None, False)
    assert "trusted key" in refused.problem
    body = place.store.read_pointer(MAIN.head).body.replace(b'"v":1', b'"v":9', 1)
    place.store.move_pointer(MAIN.head, body, present(refused.tag))
    later = current_head(place.store, MAIN, NOBODY)
    assert (later.head, later.is_later) == (None, True)


RECORD = make_record()
BODY = segment.pack_segment([RECORD])
NAME = segment_name(
    "main", TARGET, milliseconds=1, writer="0" * 8, digest=segment.segment_digest(BODY)
)


def by(signer: object) -> bytes:
    return segment.append_signature(BODY, signer.sign(NAME.name, NAME.digest))  # type: ignore[attr-defined]


def opened_records(name: SegmentName, body: bytes) -> list[object]:
    contents = opened_segment(name, body, KEYS)
    assert isinstance(contents, segment.SegmentContents)
    return [stored.record for stored in contents.stored]


def test_a_segment_that_is_whole_and_trusted_is_opened() -> None:
    assert opened_records(NAME, by(OURS)) == [RECORD]
    for foreign in (BODY, by(THEIRS)):
        assert opened_segment(NAME, foreign, KEYS) == "not signed by a trusted key"
    assert opened_segment(NAME, by(OURS)[:-1] + b"x", KEYS) == "its signature is damaged"
    assert isinstance(opened_segment(NAME, b"garbage", NOBODY), str)


def test_an_archive_of_a_group_gives_its_segments(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.publish(RECORD)
    (name,) = listing(place.store, MAIN).segments
    body = place.store.read(name.name)
    place.compact()
    (stored,) = listing(place.store, MAIN).archives
    digest = stored.rpartition("/")[2].removesuffix(".arc")
    assert list(read_archive(place.store, MAIN, digest)) == [(name, body)]


def test_a_missing_archive_is_a_broken_one() -> None:
    with pytest.raises(CorruptArchiveError, match="it is missing"):
        list(read_archive(MemoryStore(), MAIN, "a" * 64))


# What becomes of requests that are late, fail, or find nothing.


def requests(
    trouble: ReadTrouble, monotonic: Callable[[], float] = zero, deadline: float = 5.0
) -> TargetRequests:
    of_target = trouble.of(TARGET)
    return TargetRequests(
        target=TARGET, deadline=deadline, monotonic=monotonic, trouble=of_target, latest=2**53
    )


def missing() -> bytes:
    raise ObjectNotFoundError("gone")


def failing() -> bytes:
    raise StoreUnavailableError("no answer")


@pytest.fixture
def trouble() -> ReadTrouble:
    return ReadTrouble(CacheStatistics())


@pytest.mark.parametrize(
    ("request_of", "reason"), [(missing, "corrupt"), (failing, "store-unavailable")]
)
def test_what_cannot_be_had_costs_only_itself(
    trouble: ReadTrouble, request_of: Callable[[], bytes], reason: str
) -> None:
    assert list(requests(trouble).answers({"a": request_of, "b": lambda: b"x"})) == [("b", b"x")]
    assert trouble.miss_reason("w", TARGET) == reason


def test_a_missing_object_is_no_trouble_where_it_can_be_listed_again(trouble: ReadTrouble) -> None:
    with pytest.raises(StaleListingError):
        list(requests(trouble).repeatable().answers({"a": missing}))
    assert trouble.miss_reason("w", TARGET) == "absent"


def test_answers_that_come_after_the_deadline_are_left(trouble: ReadTrouble) -> None:
    late = requests(trouble, lambda: 6.0)
    assert late.is_over()
    assert list(late.answers({"a": lambda: b"x"})) == []
    assert trouble.miss_reason("w", TARGET) == "store-unavailable"


RECORDS = tuple(make_record(name, measured_at=100 + n) for n, name in enumerate("abc"))
SEGMENT_RECORDS_BODY = segment.pack_segment(RECORDS)


class Reader:
    """Reads segments for one target, and keeps what went wrong."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.statistics = CacheStatistics()
        self.trouble = ReadTrouble(self.statistics)
        self.requests = requests(self.trouble, clock)

    def read(
        self,
        body: bytes = SEGMENT_RECORDS_BODY,
        *,
        keys: TrustedKeys = NOBODY,
        revoked: tuple[Revocation, ...] = (),
        name: SegmentName | None = None,
    ) -> list[TuningRecord]:
        name = name or name_of(body)
        return list(usable_records(name, body, keys, self.requests, revoked))


def name_of(body: bytes) -> SegmentName:
    digest = segment.segment_digest(body)
    return segment_name("main", TARGET, milliseconds=1, writer="0" * 8, digest=digest)


def test_a_damaged_segment_is_trouble_and_gives_nothing() -> None:
    reader = Reader()
    assert reader.read(b"garbage", name=name_of(SEGMENT_RECORDS_BODY)) == []
    assert "cannot be used" in reader.statistics.notes[0]


def test_a_segment_that_nobody_trusted_has_signed_gives_nothing() -> None:
    reader = Reader()
    assert reader.read(keys=KEYS) == []
    assert "is not signed" in reader.statistics.notes[0]
    name = name_of(SEGMENT_RECORDS_BODY)
    by_us = segment.append_signature(SEGMENT_RECORDS_BODY, OURS.sign(name.name, name.digest))
    assert tuple(Reader().read(by_us, keys=KEYS, name=name)) == RECORDS


def test_what_was_revoked_is_not_used_and_no_trouble() -> None:
    reader = Reader()
    assert reader.read(revoked=(Revocation(since=101),)) == [RECORDS[0]]
    assert reader.trouble.miss_reason("w", TARGET) == "absent"


def test_a_record_of_another_target_is_refused_in_a_segment_of_this_one() -> None:
    stray = make_record(key=make_key("stray", hexdigest("another target")))
    reader = Reader()
    assert reader.read(segment.pack_segment([stray, RECORDS[0]])) == [RECORDS[0]]
    assert reader.statistics.refused == {"another target": 1}


def test_reading_ends_with_the_time() -> None:
    ticks = iter([0.0, 9.0, 9.0, 9.0])
    reader = Reader(lambda: next(ticks))
    assert reader.read() == list(RECORDS[:2])
    assert reader.trouble.miss_reason("w", TARGET) == "store-unavailable"


@pytest.fixture
def segment_records_place(tmp_path: Path) -> Place:
    segment_records_place = Place(tmp_path)
    segment_records_place.publish(*numbered(3))
    segment_records_place.compact()
    return segment_records_place


def snapshot_of(segment_records_place: Place) -> Snapshot:
    return present(current_head(segment_records_place.store, MAIN, NOBODY).head).snapshot


def test_a_pack_that_is_missing_or_damaged_is_a_corrupt_block(segment_records_place: Place) -> None:
    snapshot = snapshot_of(segment_records_place)
    pack = MAIN.content("pack", snapshot.packs[0])
    segment_records_place.store.delete(pack)
    with pytest.raises(CorruptBlockError, match="a pack is missing"):
        list(snapshots.snapshot_records(segment_records_place.store, MAIN, snapshot.index, NOBODY))
    segment_records_place.store.write(pack, b"garbage")
    with pytest.raises(CorruptBlockError, match="not what the index says"):
        list(snapshots.snapshot_records(segment_records_place.store, MAIN, snapshot.index, NOBODY))


def test_an_index_that_is_missing_is_a_corrupt_one(segment_records_place: Place) -> None:
    with pytest.raises(CorruptIndexError, match="it is missing"):
        snapshots.read_index(segment_records_place.store, MAIN, "0" * 64)


def hot(*records: TuningRecord) -> HotRecords:
    found = HotRecords(2**53)
    found.add(StoredRecord(record, encode_record(record)) for record in records)
    return found


def test_a_snapshot_holds_every_workload_and_who_can_teach() -> None:
    store = MemoryStore()
    records = (make_record("a"), make_record("b", status="compile", run_nanoseconds=()))
    snapshot, workloads = snapshots.write_snapshot(store, MAIN, hot(*records), 7, 1000)
    assert (snapshot.version, snapshot.at, workloads) == (7, 1000, 2)
    index = snapshots.read_index(store, MAIN, snapshot.index)
    assert set(index.block_of()) == {hexdigest("a"), hexdigest("b")}
    assert index.neighbours(make_shape(extents=(32, 32))) == [hexdigest("a")]
    written = [
        stored.record for stored in snapshots.snapshot_records(store, MAIN, snapshot.index, NOBODY)
    ]
    assert sorted(written, key=lambda r: r.status) == sorted(records, key=lambda r: r.status)


def test_two_snapshots_of_the_same_records_differ_in_their_index_alone() -> None:
    store = MemoryStore()
    first, _ = snapshots.write_snapshot(store, MAIN, hot(make_record()), 1, 1000)
    second, _ = snapshots.write_snapshot(store, MAIN, hot(make_record()), 2, 1000)
    assert first.packs == second.packs
    assert first.index != second.index


def test_what_is_larger_than_a_pack_begins_another(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    records = [make_record(f"w{number}") for number in range(400)]
    one, _ = snapshots.write_snapshot(store, MAIN, hot(*records), 1, 1000)
    monkeypatch.setattr(snapshots, "_PACK_BYTES", 1)
    many, workloads = snapshots.write_snapshot(store, MAIN, hot(*records), 2, 1000)
    assert (len(one.packs), workloads) == (1, 400)
    assert len(many.packs) == len(snapshots.read_index(store, MAIN, many.index).blocks) > 1
    assert len(list(snapshots.snapshot_records(store, MAIN, many.index, NOBODY))) == 400


def test_without_records_there_is_an_index_and_no_pack() -> None:
    store = MemoryStore()
    snapshot, workloads = snapshots.write_snapshot(store, MAIN, hot(), 1, 1000)
    assert (snapshot.packs, workloads) == ((), 0)
    assert list(snapshots.snapshot_records(store, MAIN, snapshot.index, NOBODY)) == []
