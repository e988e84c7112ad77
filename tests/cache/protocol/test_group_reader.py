"""What is read of a zone, and what is counted instead."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from tests.support.tuning_records import TARGET, hexdigest, make_key, make_record
from tunegate_cache.format import names, segment
from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.format.records import TuningRecord
from tunegate_cache.protocol.group_reader import GroupReader
from tunegate_cache.protocol.read_trouble import ReadTrouble
from tunegate_cache.protocol.target_requests import TargetRequests
from tunegate_cache.protocol.trust import Trust
from tunegate_cache.stores.memory import MemoryStore


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
        requests = TargetRequests(
            target=TARGET,
            deadline=deadline,
            monotonic=monotonic,
            trouble=self.trouble.of(TARGET),
        )
        self.records = GroupReader(store, ("main",), Trust()).read(requests).records


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
