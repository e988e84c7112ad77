"""What a store holds, counted."""

from __future__ import annotations

import pytest

from tests.support.tuning_records import TARGET, hexdigest, make_record
from tunegate_cache.format import segment
from tunegate_cache.format.names import segment_name
from tunegate_cache.format.records import TuningRecord
from tunegate_cache.maintenance.summary import GroupSummary, summary
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.store import ObjectStore, StoreUnavailableError


def put(store: ObjectStore, zone: str, *records: TuningRecord, named: str = "") -> int:
    body = segment.pack_segment(records)
    name = segment_name(
        zone,
        TARGET,
        milliseconds=len(records),
        writer="0" * 8,
        digest=named or segment.segment_digest(body),
    )
    store.write(name.name, body)
    return len(body)


def test_records_are_counted_by_zone_and_target() -> None:
    store = MemoryStore()
    failed = make_record("c", status="timeout", run_nanoseconds=())
    size = put(store, "main", make_record("a"), make_record("b"), failed)
    size += put(store, "main", make_record("a", run_nanoseconds=(0,)))
    size += put(store, "main", make_record("a"), make_record("a"), named=hexdigest("x"))
    put(store, "dev/me", make_record("a"))
    store.write("ms1/z/main/g/other/HEAD", b"{}")
    dev, main = summary(store)
    assert (dev.zone, dev.records) == ("dev/me", 1)
    assert main == GroupSummary(
        zone="main",
        target=TARGET[:16],
        version=0,
        segments=3,
        archived=0,
        records=3,
        workloads=3,
        devices=("cpu",),
        failures=1,
        refused=1,
        corrupt=1,
        size_bytes=size,
    )


def test_an_empty_store_holds_nothing() -> None:
    assert summary(MemoryStore()) == ()


class SilentStore(MemoryStore):
    def names(self, prefix: str) -> list[str]:
        raise StoreUnavailableError("s3://b: ConnectTimeoutError")


def test_a_store_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(StoreUnavailableError):
        summary(SilentStore())
