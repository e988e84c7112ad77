"""Records in memory, and the best answer they give for a task. Pure."""

from collections import defaultdict
from collections.abc import Iterable

from tunegate_cache.format.nearest import RECORDS_OF_EACH, nearest_neighbours
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    Toolchain,
    TransferHit,
    TuningRecord,
    WorkloadKey,
    WorkloadShape,
)

_EXACT_RECORDS = 8
_FAILURES = 32

_RankedRecord = tuple[str, tuple[object, ...]]


class RecordIndex:
    """A union of record sets: neither order nor number of additions matters.

    Results from `device` (same name and number of units) come before all others, and of each
    device those that `toolchain` took under the same driver.
    """

    def __init__(
        self, device: DeviceFingerprint | None = None, toolchain: Toolchain | None = None
    ) -> None:
        self._device, self._toolchain = device, toolchain
        self._records: dict[WorkloadKey, dict[TuningRecord, str]] = defaultdict(dict)
        self._of_candidates: dict[WorkloadKey, tuple[TuningRecord, ...]] = {}
        self._ranked: dict[WorkloadKey, tuple[TuningRecord, ...]] = {}
        self._shapes: dict[tuple[str, str], dict[str, WorkloadShape]] = defaultdict(dict)

    def add(self, records: Iterable[TuningRecord], zone: str = "") -> None:
        for record in records:
            zones = self._records[record.key]
            self._forget_order(record.key)
            zones[record] = min(zone, zones.get(record, zone))
            if record.status == "ok" and record.template:
                kind = (record.shape.skeleton, record.key.target)
                self._shapes[kind][record.key.workload] = record.shape

    def discard_faster(self, key: WorkloadKey, nanoseconds: int) -> int:
        """Drops a workload's records that claim less time, and returns their number."""
        zones = self._records.get(key, {})
        implausible = {
            r for r in zones if min(r.run_nanoseconds, default=nanoseconds) < nanoseconds
        }
        self._forget_order(key)
        for record in implausible:
            del zones[record]
        return len(implausible)

    def zone_of(self, record: TuningRecord) -> str:
        """Returns the zone of an added record; of several, the first by name."""
        return self._records[record.key][record]

    def exact(self, key: WorkloadKey) -> ExactHit | None:
        """Returns the fastest few, including one confirmed on the same device if there is any. It
        says that the search was completed, and a slow moment during its measurement may have put it
        behind many quick measurements."""
        ranked = self._rank(key)
        best = _include_confirmed(ranked, _EXACT_RECORDS)
        return ExactHit(best, self.failures(key)) if best else None

    def transfer(self, key: WorkloadKey, shape: WorkloadShape) -> TransferHit | None:
        """Returns the best records of the nearest shapes, without default schedules, which teach
        nothing."""
        others = self._shapes.get((shape.skeleton, key.target), {}).items()
        candidates = ((workload, other.extents) for workload, other in others)
        sources = [
            (distance, source, records)
            for distance, workload in nearest_neighbours(shape.extents, candidates)
            if (source := WorkloadKey(workload, key.target)) != key
            and (records := [r for r in self._rank(source) if r.template][:RECORDS_OF_EACH])
        ]
        if not sources:
            return None
        return TransferHit(
            source_workloads=tuple(source for _, source, _ in sources),
            distance=sources[0][0],
            records=tuple(record for _, _, records in sources for record in records),
            failures=self.failures(key),
        )

    def failures(self, key: WorkloadKey) -> tuple[TuningRecord, ...]:
        failed = [record for record in self._latest(key) if record.status != "ok"]
        return tuple(sorted(failed, key=_latest_first)[:_FAILURES])

    def _forget_order(self, key: WorkloadKey) -> None:
        self._of_candidates.pop(key, None)
        self._ranked.pop(key, None)

    def _rank(self, key: WorkloadKey) -> tuple[TuningRecord, ...]:
        """Returns the usable records in order. Many tasks may have one neighbour with very many, so
        its order is kept."""
        if key not in self._ranked:
            usable = [record for record in self._latest(key) if record.status == "ok"]
            self._ranked[key] = tuple(sorted(usable, key=self._fastest_first))
        return self._ranked[key]

    def _latest(self, key: WorkloadKey) -> tuple[TuningRecord, ...]:
        """Returns each candidate's latest measurement, on our device and toolchain if possible."""
        if key not in self._of_candidates:
            self._of_candidates[key] = tuple(self._choose_latest(key))
        return self._of_candidates[key]

    def _choose_latest(self, key: WorkloadKey) -> Iterable[TuningRecord]:
        latest: dict[_RankedRecord, TuningRecord] = {}
        for record in self._records.get(key, ()):
            candidate = (record.template, record.decisions)
            other = latest.get(candidate)
            if other is None or self._currency(record) > self._currency(other):
                latest[candidate] = record
        return latest.values()

    def _currency(self, record: TuningRecord) -> tuple[object, ...]:
        tie = (record.run_nanoseconds, record.status, str(record.device), str(record.source))
        return self._is_ours(record), self._is_current(record), record.recency, tie

    def _fastest_first(self, record: TuningRecord) -> tuple[object, ...]:
        rank = (not self._is_ours(record), not self._is_current(record), record.shrunk_ms)
        return *rank, record.template, record.decisions

    def _is_ours(self, record: TuningRecord) -> bool:
        ours, theirs = self._device, record.device
        return ours is not None and (ours.name, ours.units) == (theirs.name, theirs.units)

    def _is_current(self, record: TuningRecord) -> bool:
        driver = "" if self._device is None else self._device.driver
        return self._toolchain is not None and record.is_timed_by(self._toolchain, driver)


def _include_confirmed(ranked: tuple[TuningRecord, ...], count: int) -> tuple[TuningRecord, ...]:
    here = [each for each in ranked if each.device.name == ranked[0].device.name]
    fastest = next((record for record in here if record.is_confirmed), None)
    first = ranked[:count]
    return first if fastest is None or fastest in first else (*first[:-1], fastest)


def _latest_first(record: TuningRecord) -> tuple[object, ...]:
    return -record.measured_at, record.template, record.decisions
