"""The best few records of every workload: a view of all records, in bounded memory. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tunegate_cache.format.records import TuningRecord, WorkloadShape
from tunegate_cache.format.revocation import Revocation, is_revoked
from tunegate_cache.format.stored_record import StoredRecord

BEST_OF_EACH_DEVICE = 8
FAILURES = 32
_SLACK = 4
"""A workload is cut down when it has this many times what it may keep."""

_Candidate = tuple[str, tuple[object, ...], str, int]


class HotRecords:
    """The fastest candidates for every workload on each kind of device, among them one that is
    confirmed where there is any, and the latest failures.

    Of one candidate on one kind of device the latest measurement counts. The order in which records
    come does not matter as long as a candidate's later measurement is not among those cut already.
    """

    def __init__(self, revoked: tuple[Revocation, ...] = ()) -> None:
        """Starts empty; `revoked` records are never added."""
        self.revoked = revoked
        self._workloads: dict[str, dict[_Candidate, StoredRecord]] = {}
        self.added = 0

    def add(self, records: Iterable[StoredRecord]) -> None:
        for stored in records:
            if is_revoked(stored, self.revoked):
                continue
            self.added += 1
            known = self._workloads.setdefault(stored.record.key.workload, {})
            candidate = _candidate(stored.record)
            other = known.get(candidate)
            if other is None or _currency(stored) > _currency(other):
                known[candidate] = stored
            if len(known) > _SLACK * (BEST_OF_EACH_DEVICE + FAILURES):
                self._workloads[stored.record.key.workload] = _cut(known)

    def workloads(self) -> Iterator[tuple[str, list[StoredRecord]]]:
        """Sorted by workload; the records of each in an order that depends on nothing else."""
        for workload in sorted(self._workloads):
            kept = _cut(self._workloads[workload]).values()
            yield workload, sorted(kept, key=_order)


def shape_to_teach(records: Iterable[StoredRecord]) -> WorkloadShape | None:
    """The shape of a workload with at least one schedule that others can transfer."""
    usable = (s.record for s in records if s.record.status == "ok" and s.record.template)
    return next((record.shape for record in usable), None)


def _cut(known: dict[_Candidate, StoredRecord]) -> dict[_Candidate, StoredRecord]:
    kept: dict[_Candidate, StoredRecord] = {}
    served: dict[tuple[str, int], int] = {}
    ended: set[tuple[str, int]] = set()
    failures = 0
    for candidate, stored in sorted(known.items(), key=lambda item: _order(item[1])):
        if stored.record.status != "ok":
            failures += 1
            if failures <= FAILURES:
                kept[candidate] = stored
            continue
        device = (stored.record.device.name, stored.record.device.units)
        served[device] = served.get(device, 0) + 1
        # The default schedule is what a result is compared with, and the fastest confirmed one says
        # that the search has ended: they are kept however slow.
        says_end = stored.record.is_confirmed and device not in ended
        if served[device] <= BEST_OF_EACH_DEVICE or not stored.record.template or says_end:
            kept[candidate] = stored
        if stored.record.is_confirmed:
            ended.add(device)
    return kept


def _candidate(record: TuningRecord) -> _Candidate:
    return record.template, record.decisions, record.device.name, record.device.units


def _currency(stored: StoredRecord) -> tuple[tuple[int, bool, int], bytes]:
    return stored.record.recency, stored.text


def _order(stored: StoredRecord) -> tuple[object, ...]:
    """Fastest first, then failures, latest first."""
    record = stored.record
    if record.status != "ok":
        return 1, -record.measured_at, stored.text
    return 0, record.shrunk_ms, stored.text
