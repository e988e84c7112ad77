"""The best few records of every workload: a view of all records, in bounded memory. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from tunegate_cache.format.records import StoredRecord, Toolchain, TuningRecord, WorkloadShape
from tunegate_cache.format.revocation import Revocation, counted

BEST_OF_EACH_DEVICE = 8
FAILURES = 32
TOOLCHAINS = 4
"""The toolchains of each device, the last that measured anything, whose records are kept: those of
a newer one never push out what teams on an older one still use."""
_SLACK = 4
"""A workload is cut down when it has this many times its limit."""

_Place = tuple[str, str, int, str, Toolchain]
"""The whole target key first, of which a group's name has the beginning: a record of another target
must hide none."""
_Candidate = tuple[str, tuple[object, ...], _Place]


class HotRecords:
    """The fastest candidates of every workload on each kind of device by each toolchain, including
    a confirmed one if there is any, and the latest failures.

    The latest measurement of a candidate on a kind of device by a toolchain counts. The order of
    additions does not matter, unless a candidate's later measurement was cut already.
    """

    def __init__(
        self,
        latest: int,
        revoked: tuple[Revocation, ...] = (),
        new: Sequence[Revocation] = (),
    ) -> None:
        """Starts empty; `revoked` records are never added, and dates after `latest` do not count.
        `hidden` has a hash of each record that the `new` revocations among them cover: it may be in
        an archive and in the snapshot."""
        self.latest, self.revoked, self._new = latest, revoked, new
        self._workloads: dict[str, dict[_Candidate, StoredRecord]] = {}
        self.hidden: set[int] = set()
        self.added = self.misdated = 0

    def add(self, records: Iterable[StoredRecord]) -> None:
        for read in records:
            stored = counted(read, self.revoked, self.latest)
            if stored is None:
                if any(each.covers(read, self.latest) for each in self._new):
                    self.hidden.add(hash(read.text))
                continue
            self.misdated += stored is not read
            by_candidate = self._workloads.setdefault(stored.record.key.workload, {})
            candidate = _candidate(stored.record)
            other = by_candidate.get(candidate)
            self.added += other is None or other.text != stored.text
            if other is None or _currency(stored) > _currency(other):
                by_candidate[candidate] = stored
            if len(by_candidate) > _SLACK * (BEST_OF_EACH_DEVICE + FAILURES):
                self._workloads[stored.record.key.workload] = _keep_best(by_candidate)

    def workloads(self) -> Iterator[tuple[str, list[StoredRecord]]]:
        """Yields the records by workload, sorted; their order depends on nothing else."""
        for workload in sorted(self._workloads):
            best = _keep_best(self._workloads[workload]).values()
            yield workload, sorted(best, key=_order)


def shape_to_teach(records: Iterable[StoredRecord]) -> WorkloadShape | None:
    """Returns the shape of a workload with at least one schedule to transfer."""
    usable = (s.record for s in records if s.record.status == "ok" and s.record.template)
    return next((record.shape for record in usable), None)


def _keep_best(best: dict[_Candidate, StoredRecord]) -> dict[_Candidate, StoredRecord]:
    by_candidate: dict[_Candidate, StoredRecord] = {}
    served: dict[_Place, int] = {}
    finished_places: set[_Place] = set()
    latest = _latest_places(best.values())
    failures = 0
    for candidate, stored in sorted(best.items(), key=lambda item: _order(item[1])):
        if stored.record.status != "ok":
            failures += 1
            if failures <= FAILURES:
                by_candidate[candidate] = stored
            continue
        place = _place(stored.record)
        if place not in latest:
            continue
        served[place] = served.get(place, 0) + 1
        # Results are compared with the default schedule, and the fastest confirmed one says
        # that the search has ended: they are kept however slow.
        says_end = stored.record.is_confirmed and place not in finished_places
        if served[place] <= BEST_OF_EACH_DEVICE or not stored.record.template or says_end:
            by_candidate[candidate] = stored
        if stored.record.is_confirmed:
            finished_places.add(place)
    return by_candidate


def _latest_places(records: Iterable[StoredRecord]) -> set[_Place]:
    """Returns, for each device, the places of the toolchains that measured last."""
    latest: dict[_Place, int] = {}
    for stored in records:
        if stored.record.status == "ok":
            place = _place(stored.record)
            latest[place] = max(latest.get(place, 0), stored.record.measured_at)
    devices: dict[tuple[str, str, int], list[_Place]] = {}
    for place in sorted(latest, key=lambda each: (-latest[each], str(each))):
        devices.setdefault(place[:3], []).append(place)
    return {place for places in devices.values() for place in places[:TOOLCHAINS]}


def _place(record: TuningRecord) -> _Place:
    device = record.device
    return record.key.target, device.name, device.units, device.driver, record.toolchain


def _candidate(record: TuningRecord) -> _Candidate:
    return record.template, record.decisions, _place(record)


def _currency(stored: StoredRecord) -> tuple[tuple[int, bool, int], bytes]:
    return stored.record.recency, stored.text


def _order(stored: StoredRecord) -> tuple[object, ...]:
    """Returns a sort key: fastest first, then failures, latest first."""
    record = stored.record
    if record.status != "ok":
        return 1, -record.measured_at, stored.text
    return 0, record.shrunk_ms, stored.text
