"""The records of some zones in memory: each target is read once, then the snapshots' records of
each task."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.format.record_codec import RefusedLine
from tunegate_cache.format.records import (
    DeviceFingerprint,
    Toolchain,
    TuningRecord,
    WorkloadKey,
    WorkloadShape,
)
from tunegate_cache.format.revocation import SKEW_SECONDS
from tunegate_cache.protocol.group_reader import GroupReader
from tunegate_cache.protocol.record_index import RecordIndex
from tunegate_cache.protocol.snapshots import OpenSnapshot, SnapshotReader
from tunegate_cache.protocol.target_requests import ReadTrouble, TargetRequests
from tunegate_cache.protocol.trust import Trust
from tunegate_cache.protocol.uploads import Pending
from tunegate_cache.stores.store import ObjectStore

_Wanted = Sequence[tuple[WorkloadKey, WorkloadShape]]


class ZoneRecords:
    """Records of some zones; those of other zones neither rank among them nor hide one of them."""

    def __init__(
        self,
        store: ObjectStore,
        zones: Sequence[str],
        *,
        trust: Trust,
        statistics: CacheStatistics,
        monotonic: Callable[[], float],
        device: DeviceFingerprint | None,
        toolchain: Toolchain | None,
    ) -> None:
        self.zones = tuple(zones)
        self.index = RecordIndex(device, toolchain)
        self.trouble = ReadTrouble(statistics)
        self._monotonic = monotonic
        self._groups = GroupReader(store, self.zones, trust)
        self._blocks = SnapshotReader(store)
        self._snapshots: dict[str, tuple[OpenSnapshot, ...]] = {}

    def is_new_to(self, workloads: _Wanted) -> bool:
        """Returns whether a target of these tasks has not been read yet."""
        return any(key.target not in self._snapshots for key, _ in workloads)

    def load(
        self, workloads: _Wanted, waiting: Sequence[Pending], deadline: float, now: int
    ) -> None:
        """Loads as much as time allows. `waiting` are these zones' segments that are still on this
        machine; `now` is in seconds since 1970."""
        by_target: dict[str, list[tuple[WorkloadKey, WorkloadShape]]] = defaultdict(list)
        for key, shape in workloads:
            by_target[key.target].append((key, shape))
        for target, keys in sorted(by_target.items()):
            requests = TargetRequests(
                target=target,
                deadline=deadline,
                monotonic=self._monotonic,
                trouble=self.trouble.of(target),
                latest=now + SKEW_SECONDS,
            )
            if target not in self._snapshots:
                contents = self._groups.read(requests, waiting)
                self._snapshots[target] = contents.snapshots
                self._add(contents.records)
            self._add(self._blocks.read(self._snapshots[target], keys, requests))

    def _add(self, records: Iterable[tuple[str, TuningRecord]]) -> None:
        for zone, record in records:
            self.index.add((record,), zone)

    def refuse_faster(self, fastest: Mapping[WorkloadKey, int]) -> None:
        """Drops the records that claim less time than these, in nanoseconds."""
        for key, nanoseconds in fastest.items():
            refused = self.index.discard_faster(key, nanoseconds)
            if refused:
                self.trouble.note_refused(
                    RefusedLine("faster than any hardware", key.workload), refused
                )
