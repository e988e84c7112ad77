from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.compacted_place import NOBODY, Place
from tests.support.tuning_records import TARGET, hexdigest, make_key, make_record, make_shape
from tunegate_cache.format import segment
from tunegate_cache.format.names import segment_name
from tunegate_cache.format.records import TuningRecord, WorkloadKey, WorkloadShape
from tunegate_cache.maintenance.explanation import Explanation, explain
from tunegate_cache.maintenance.request_prices import usd_of
from tunegate_cache.maintenance.summary import GroupSummary, summary
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.s3 import S3
from tunegate_cache.stores.store import ObjectStore, StoreUnavailableError


@pytest.fixture(params=["segments", "a snapshot"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    """A cache with one record of `w` and a failure of `f`, before or after a compaction."""
    place = Place(tmp_path)
    place.publish(make_record(), make_record("f", status="compile", run_nanoseconds=()))
    if request.param == "a snapshot":
        place.compact()
        place.collect()
    return place


def explained(
    place: Place,
    key: WorkloadKey,
    shape: WorkloadShape | None = None,
    *,
    zones: Sequence[str] = ("main",),
    own: Sequence[str] = (),
) -> Explanation:
    return explain(place.store, zones, key, shape or make_shape("another"), NOBODY, own=own)


def test_what_is_there_is_found(place: Place) -> None:
    found = explained(place, make_key())
    assert (found.differs, found.detail) == ("nothing", "there are records in zone main")


def test_a_task_of_which_only_failures_are_known_says_so(place: Place) -> None:
    assert explained(place, make_key("f")).differs == "status"


def test_records_in_a_zone_that_is_not_read_are_named_with_it(place: Place) -> None:
    found = explained(place, make_key(), zones=("team", "else"))
    assert found.differs == "zone"
    assert found.detail == "the records are in zone main; this run reads team, else"


def test_claims_of_the_own_zone_are_not_trusted(place: Place) -> None:
    found = explained(place, make_key(), zones=("team",), own=("main",))
    assert found.differs == "trust"
    assert explained(place, make_key("f"), zones=("team",), own=("main",)).differs == "zone"


def test_records_for_another_target_are_named_with_it(place: Place) -> None:
    found = explained(place, make_key(target=hexdigest("another target")))
    assert found.differs == "target"
    assert hexdigest("target")[:16] in found.detail


def test_the_nearest_shape_is_named_with_the_extents_that_differ(place: Place) -> None:
    found = explained(place, make_key("new"), make_shape(extents=(64, 32)))
    assert found.differs == "extents"
    assert found.neighbour is not None
    assert (found.neighbour.workload, found.neighbour.extents) == (hexdigest("w"), (64, 64))
    assert "32" in found.detail


def test_an_operation_that_was_never_recorded_has_no_neighbour(place: Place) -> None:
    found = explained(place, make_key("new"))
    assert (found.differs, found.neighbour) == ("skeleton", None)


# What a store holds, counted.


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


PRICES = S3.usd_per_1000_requests or {}


def test_writing_and_listing_cost_more_than_reading() -> None:
    assert usd_of({"get": 1000}, PRICES) == pytest.approx(0.0004)
    assert usd_of({"put": 1000, "list": 1000}, PRICES) == pytest.approx(0.01)
    assert usd_of({}, PRICES) == 0


def test_deleting_is_free() -> None:
    assert usd_of({"delete": 10**6}, PRICES) == 0
