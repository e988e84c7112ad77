from __future__ import annotations

import hashlib

import pytest

from tests.support.compacted_place import MAIN
from tests.support.tuning_records import hexdigest, make_record, make_shape
from tunegate_cache.format.record_codec import encode_record
from tunegate_cache.format.records import TuningRecord
from tunegate_cache.format.stored_record import StoredRecord
from tunegate_cache.protocol import snapshot_writer
from tunegate_cache.protocol.hot_records import HotRecords
from tunegate_cache.protocol.snapshot_records import read_index, snapshot_records
from tunegate_cache.protocol.snapshot_writer import write_content, write_snapshot
from tunegate_cache.stores.memory import MemoryStore


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
