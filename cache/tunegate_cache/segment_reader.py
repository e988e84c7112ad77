"""All that the readable zones hold for a target: one LIST for each zone, then parallel GETs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tunegate_cache import names, segment
from tunegate_cache.cache_statistics import CacheStatistics
from tunegate_cache.in_time import in_time
from tunegate_cache.names import SegmentName
from tunegate_cache.records import MissReason, TuningRecord
from tunegate_cache.store import ObjectStore
from tunegate_cache.wire import Refused


class SegmentReader:
    """Reads into memory and remembers what could not be read, to give misses their reason."""

    def __init__(
        self,
        store: ObjectStore,
        zones: Sequence[str],
        statistics: CacheStatistics,
        monotonic: Callable[[], float],
    ) -> None:
        self._store, self._zones = store, zones
        self._statistics, self._monotonic = statistics, monotonic
        self._unavailable: set[str] = set()
        self._corrupt: set[str] = set()
        self._rejected: set[str] = set()

    def read(self, target: str, deadline: float) -> tuple[TuningRecord, ...]:
        """Every usable record; trouble of any kind costs the records it touches."""
        found = self._segments(target, deadline)
        bodies = {name: partial(self._store.read, name.name) for name in found}
        records: list[TuningRecord] = []
        answered = 0
        for name, body in in_time(bodies, deadline=deadline, monotonic=self._monotonic):
            if self._monotonic() > deadline:
                break  # what has come is no reason to go on: unpacking takes time as well
            answered += 1
            if isinstance(body, Exception):
                self._unavailable.add(target)
            else:
                records.extend(self.unpacked(name, body, target, deadline))
        if answered < len(bodies):
            self._late(target)
        return tuple(records)

    def unpacked(
        self, name: SegmentName, body: bytes, target: str, deadline: float
    ) -> Iterator[TuningRecord]:
        try:
            lines = segment.lines(body, name.digest)
        except segment.CorruptSegmentError as error:
            self._corrupt.add(target)
            self._statistics.corrupt_segments += 1
            self._statistics.note(f"cache: segment {name.name} is corrupt ({error})")
            return
        for line in lines:
            if isinstance(line, Refused):
                self.refuse(line.reason, line.workload)
            elif line.key.target == target:
                yield line
            elif names.is_of_target(name, target):
                self.refuse("another target", line.key.workload)
            if self._monotonic() > deadline:
                self._late(target)
                return

    def refuse(self, reason: str, workload: str, count: int = 1) -> None:
        """Counts records that are not used, and remembers whose they were."""
        self._statistics.refused[reason] += count
        self._rejected.add(workload)

    def miss_reason(self, workload: str, target: str) -> MissReason:
        """The likeliest reason why nothing was found."""
        if target in self._unavailable:
            return "store-unavailable"
        if workload in self._rejected:
            return "rejected"
        return "corrupt" if target in self._corrupt else "absent"

    def _segments(self, target: str, deadline: float) -> list[SegmentName]:
        """Newest first, so that the budget buys the best."""
        prefixes = [names.segment_prefix(zone, target) for zone in self._zones]
        listings = {prefix: partial(self._store.names, prefix) for prefix in prefixes}
        found: list[SegmentName] = []
        answered = 0
        for prefix, listed in in_time(listings, deadline=deadline, monotonic=self._monotonic):
            answered += 1
            if isinstance(listed, Exception):
                self._unavailable.add(target)
            else:
                found.extend(names.segments_under(prefix, listed))
        if answered < len(listings):
            self._late(target)
        return sorted(found, key=lambda name: -name.milliseconds)

    def _late(self, target: str) -> None:
        self._unavailable.add(target)
        self._statistics.note("cache: not everything could be read in time")
