from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.tuning_records import hexdigest, make_key, make_record, make_shape
from tunegate_cache import names, segment
from tunegate_cache.memory import MemoryStore
from tunegate_cache.records import ExactHit, Lookup, Miss, TransferHit
from tunegate_cache.store import ObjectStore, StoreUnavailableError
from tunegate_cache.tuning_cache import Mode, TuningCache, Zones
from tunegate_cache.write_ahead import WriteAhead


class BrokenStore:
    """A store that refuses everything, as one whose credentials have run out."""

    def read(self, name: str) -> bytes:
        raise StoreUnavailableError("s3://b: AccessDenied")

    def write(self, name: str, body: bytes) -> None:
        raise StoreUnavailableError("s3://b: AccessDenied")

    def names(self, prefix: str) -> Sequence[str]:
        raise StoreUnavailableError("s3://b: AccessDenied")


def cache_over(
    store: ObjectStore, tmp_path: Path, *, mode: Mode = "rw", zone: str = "main"
) -> TuningCache:
    return TuningCache(
        store,
        zones=Zones(zone, ("main",)),
        mode=mode,
        write_ahead=WriteAhead(tmp_path / "wal"),
        monotonic=time.monotonic,
        milliseconds=lambda: int(time.time() * 1000),
    )


def answer(cache: TuningCache, workload: str = "w", extents: tuple[int, ...] = (64, 64)) -> Lookup:
    key = make_key(workload)
    return cache.lookup([(key, make_shape(extents=extents))])[key]


def test_what_one_run_publishes_another_finds_best_first(tmp_path: Path) -> None:
    store = MemoryStore()
    slow = make_record(run_nanoseconds=(9_000_000,))
    fast = make_record(run_nanoseconds=(1_000_000,), decisions=((3, (8, 8)), (5, (0,))))
    assert cache_over(store, tmp_path).publish([slow, fast])
    assert answer(cache_over(store, tmp_path)) == ExactHit((fast, slow))


def test_the_nearest_shape_of_the_same_kind_is_a_transfer(tmp_path: Path) -> None:
    store = MemoryStore()
    near = make_record("near", shape=make_shape(extents=(64, 128)))
    far = make_record("far", shape=make_shape(extents=(64, 4096)))
    cache_over(store, tmp_path).publish([far, near])
    hit = answer(cache_over(store, tmp_path), "new", (64, 64))
    assert isinstance(hit, TransferHit)
    assert (hit.donors[0], hit.distance) == (near.key, 1.0)
    assert hit.records[0] == near


def test_another_skeleton_or_nothing_is_a_counted_miss(tmp_path: Path) -> None:
    store = MemoryStore()
    cache_over(store, tmp_path).publish([make_record("x", shape=make_shape("other"))])
    cache = cache_over(store, tmp_path)
    assert answer(cache) == Miss("absent")
    assert cache.statistics.misses == {"absent": 1}


def test_a_failed_candidate_is_kept_but_never_served(tmp_path: Path) -> None:
    store = MemoryStore()
    failed = make_record(status="wrong", run_nanoseconds=())
    cache_over(store, tmp_path).publish([failed])
    assert answer(cache_over(store, tmp_path)) == Miss("absent", (failed,))


def test_the_latest_measurement_of_a_candidate_counts(tmp_path: Path) -> None:
    lucky = make_record(run_nanoseconds=(1_000,), measured_at=1)
    careful = make_record(run_nanoseconds=(5_000,), measured_at=2)
    cache = cache_over(MemoryStore(), tmp_path)
    cache.publish([careful, lucky])
    assert answer(cache) == ExactHit((careful,))


def test_a_pull_request_writes_only_its_own_zone_and_main_never_reads_it(tmp_path: Path) -> None:
    store = MemoryStore()
    cache_over(store, tmp_path, zone="pr/o/r/7").publish([make_record()])
    assert all(name.startswith("ms1/z/pr/o/r/7/") for name in store.names(""))
    assert answer(cache_over(store, tmp_path)) == Miss("absent")
    assert isinstance(answer(cache_over(store, tmp_path, zone="pr/o/r/7")), ExactHit)


def test_a_broken_store_is_a_miss_and_one_line_and_the_records_wait(tmp_path: Path) -> None:
    cache = cache_over(BrokenStore(), tmp_path)
    assert answer(cache) == Miss("store-unavailable")
    assert not cache.publish([make_record()])
    assert "cache: s3://b: AccessDenied" in cache.statistics.notes
    later = MemoryStore()
    assert isinstance(answer(cache_over(later, tmp_path)), ExactHit)
    assert list(WriteAhead(tmp_path / "wal").pending("main")) == []


def test_after_three_failures_the_store_is_left_alone(tmp_path: Path) -> None:
    cache = cache_over(BrokenStore(), tmp_path)
    for number in range(6):
        cache.publish([make_record(str(number))])
    assert sum(cache.statistics.requests.values()) == 3


@pytest.mark.parametrize("mode", ["ro", "off"])
def test_only_a_writing_run_writes(tmp_path: Path, mode: Mode) -> None:
    store = MemoryStore()
    assert not cache_over(store, tmp_path, mode=mode).publish([make_record()])
    assert list(store.names("")) == []


def test_a_corrupt_segment_is_a_miss_and_costs_no_other(tmp_path: Path) -> None:
    store = MemoryStore()
    cache_over(store, tmp_path).publish([make_record()])
    wrong = names.segment_name(
        "main", make_key().target, milliseconds=1, writer="0" * 8, digest=hexdigest("x")
    )
    store.write(wrong.name, b"not what the name says")
    cache = cache_over(store, tmp_path)
    assert isinstance(answer(cache), ExactHit)
    assert cache.statistics.corrupt_segments == 1


def test_a_bad_record_in_a_good_segment_costs_itself_only(tmp_path: Path) -> None:
    store = MemoryStore()
    body = segment.pack([make_record(), make_record(run_nanoseconds=(-1,))])
    name = names.segment_name(
        "main", make_key().target, milliseconds=1, writer="0" * 8, digest=segment.digest(body)
    )
    store.write(name.name, body)
    cache = cache_over(store, tmp_path)
    assert answer(cache) == ExactHit((make_record(),))
    assert cache.statistics.refused_records == 1
