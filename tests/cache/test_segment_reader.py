"""What is read of a zone, and what is counted instead."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

from tests.support.tuning_records import TARGET, hexdigest, make_key, make_record
from tunegate_cache import names, segment
from tunegate_cache.cache_statistics import CacheStatistics
from tunegate_cache.memory import MemoryStore
from tunegate_cache.records import TuningRecord
from tunegate_cache.segment_reader import SegmentReader


class Gossip(MemoryStore):
    """A store that lists everything it has, whatever it is asked."""

    def names(self, prefix: str) -> Sequence[str]:
        return super().names("")


def put(store: MemoryStore, zone: str, target: str, *records: TuningRecord) -> None:
    body = segment.pack(records)
    name = names.segment_name(
        zone, target, milliseconds=1, writer="0" * 8, digest=segment.digest(body)
    )
    store.write(name.name, body)


def read(store: MemoryStore) -> tuple[tuple[TuningRecord, ...], CacheStatistics, SegmentReader]:
    statistics = CacheStatistics()
    reader = SegmentReader(store, ("main",), statistics, time.monotonic)
    return reader.read(TARGET, time.monotonic() + 5), statistics, reader


def test_a_store_that_lists_other_zones_and_targets_gets_none_of_them_in() -> None:
    store = Gossip()
    put(store, "main", TARGET, make_record())
    put(store, "pr/o/r/7", TARGET, make_record("poison"))
    put(store, "main", hexdigest("another"), make_record("stray"))
    assert read(store)[0] == (make_record(),)


def test_a_record_of_another_target_is_refused_and_counted() -> None:
    store = MemoryStore()
    stray = make_record("stray", key=make_key("stray", hexdigest("another")))
    put(store, "main", TARGET, stray, make_record())
    records, statistics, reader = read(store)
    assert records == (make_record(),)
    assert statistics.refused == {"another target": 1}
    assert reader.miss_reason(stray.key.workload, TARGET) == "rejected"


def test_what_unpacks_slowly_ends_with_the_time_and_keeps_what_is_good() -> None:
    store = MemoryStore()
    put(store, "main", TARGET, *(make_record(run_nanoseconds=(ns,)) for ns in range(1, 900)))
    seconds = itertools.count()
    statistics = CacheStatistics()
    reader = SegmentReader(store, ("main",), statistics, lambda: float(next(seconds)))
    records = reader.read(TARGET, 100.0)
    assert 50 < len(records) < 100
    assert statistics.notes == ("cache: not everything could be read in time",)
    assert reader.miss_reason("w", TARGET) == "store-unavailable"


def test_what_came_in_time_is_left_when_the_time_is_over() -> None:
    store = MemoryStore()
    for number in range(50):
        put(store, "main", TARGET, make_record(run_nanoseconds=(number + 1,)))
    seconds = itertools.count()
    reader = SegmentReader(store, ("main",), CacheStatistics(), lambda: float(next(seconds)))
    assert len(reader.read(TARGET, 40.0)) < 30


def test_refused_records_are_counted_and_remembered() -> None:
    _, statistics, reader = read(MemoryStore())
    reader.refuse("odd", "w", 3)
    assert statistics.refused == {"odd": 3}
    assert reader.miss_reason("w", TARGET) == "rejected"
