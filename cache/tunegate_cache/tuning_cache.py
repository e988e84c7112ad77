"""The shared cache as a run uses it: look up many tasks at once, publish what was learned.

Trouble never comes out of here as an exception: it is a counted miss, or records that wait in the
write-ahead directory for the next run.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Literal

import msgspec

from tunegate_cache import names, segment
from tunegate_cache.cache_statistics import CacheStatistics
from tunegate_cache.guarded import GuardedStore
from tunegate_cache.nearest import RECORDS_OF_EACH, nearest
from tunegate_cache.records import (
    ExactHit,
    Lookup,
    Miss,
    TransferHit,
    TuningRecord,
    WorkloadKey,
    WorkloadShape,
)
from tunegate_cache.store import ObjectNotFoundError, ObjectStore, StoreUnavailableError
from tunegate_cache.write_ahead import WriteAhead

LOOKUP_SECONDS = 5.0
_PARALLEL_READS = 16
_EXACT_RECORDS = 8

Mode = Literal["off", "ro", "rw"]
Monotonic = Callable[[], float]


class Zones(msgspec.Struct, frozen=True):
    """Where a run writes, and where it reads, in this order."""

    write: str
    read: tuple[str, ...]

    def reading_order(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.write, *self.read)))


class TuningCache:
    """One run's view. Segments are read once; what is published is seen by later look-ups."""

    def __init__(
        self,
        store: ObjectStore,
        *,
        zones: Zones,
        mode: Mode,
        write_ahead: WriteAhead,
        monotonic: Monotonic,
        milliseconds: Callable[[], int],
    ) -> None:
        self.statistics = CacheStatistics()
        self._store = GuardedStore(store, self.statistics)
        self._zones, self._mode, self._write_ahead = zones, mode, write_ahead
        self._monotonic, self._milliseconds = monotonic, milliseconds
        self._writer = secrets.token_hex(4)
        self._records: dict[WorkloadKey, list[TuningRecord]] = defaultdict(list)
        self._shapes: dict[tuple[str, str], dict[str, WorkloadShape]] = defaultdict(dict)
        self._loaded: dict[str, bool] = {}

    def lookup(
        self, wanted: Sequence[tuple[WorkloadKey, WorkloadShape]]
    ) -> Mapping[WorkloadKey, Lookup]:
        """An answer for every key, within the time budget."""
        if self._mode == "off":
            return {key: self._missed("off") for key, _ in wanted}
        started = self._monotonic()
        if self._mode == "rw":
            self._deliver_pending()
        for target in dict.fromkeys(key.target for key, _ in wanted):
            if target not in self._loaded:
                self._loaded[target] = self._load(target, started + LOOKUP_SECONDS)
        answers = {key: self._answer(key, shape) for key, shape in wanted}
        self.statistics.seconds += self._monotonic() - started
        return answers

    def publish(self, records: Sequence[TuningRecord]) -> bool:
        """Store records as one segment for each target; False when they only wait locally."""
        if self._mode != "rw" or not records:
            return False
        self._index(records)
        by_target: dict[str, list[TuningRecord]] = defaultdict(list)
        for record in records:
            by_target[record.key.target].append(record)
        delivered = [self._send(*self._packed(t, found)) for t, found in by_target.items()]
        self.statistics.records_written += len(records) if all(delivered) else 0
        return all(delivered)

    def _packed(self, target: str, records: Sequence[TuningRecord]) -> tuple[str, bytes]:
        body = segment.pack(records)
        name = names.segment_name(
            self._zones.write,
            target,
            milliseconds=self._milliseconds(),
            writer=self._writer,
            digest=segment.digest(body),
        )
        return name, body

    def _send(self, name: str, body: bytes) -> bool:
        self._write_ahead.keep(name, body)
        return self._deliver(name, body)

    def _deliver(self, name: str, body: bytes) -> bool:
        try:
            self._store.write(name, body)
        except StoreUnavailableError:
            self.statistics.note("cache: new records wait on this machine for the next run")
            return False
        self._write_ahead.forget(name)
        return True

    def _deliver_pending(self) -> None:
        own = f"{names.ROOT}/z/{self._zones.write}/"
        for name, body in self._write_ahead.pending():
            if name.startswith(own) and not self._deliver(name, body):
                return

    def _load(self, target: str, deadline: float) -> bool:
        """Read every segment of the target, zone by zone; False when some could not be read."""
        complete = True
        for zone in self._zones.reading_order():
            try:
                found = self._store.names(names.segment_prefix(zone, target))
            except StoreUnavailableError:
                complete = False
                continue
            parsed = [names.parse_segment(name) for name in found]
            complete &= self._read_all([name for name in parsed if name], deadline)
        return complete

    def _read_all(self, found: Sequence[names.SegmentName], deadline: float) -> bool:
        pool = ThreadPoolExecutor(_PARALLEL_READS)
        waiting: set[Future[bytes | None]] = set()
        digests: dict[Future[bytes | None], str] = {}
        for name in sorted(found, key=lambda n: -n.milliseconds):
            future = pool.submit(self._read, name.name)
            waiting.add(future)
            digests[future] = name.digest
        complete = True
        while waiting:
            done, waiting = wait(
                waiting, max(0.0, deadline - self._monotonic()), return_when=FIRST_COMPLETED
            )
            if not done:
                self.statistics.note("cache: not everything could be read in time")
                complete = False
                break
            for future in done:
                complete &= self._take(future.result(), digests[future])
        pool.shutdown(wait=False, cancel_futures=True)
        return complete

    def _read(self, name: str) -> bytes | None:
        try:
            return self._store.read(name)
        except (ObjectNotFoundError, StoreUnavailableError):
            return None

    def _take(self, body: bytes | None, digest: str) -> bool:
        if body is None:
            return False
        try:
            contents = segment.unpack(body, digest)
        except segment.CorruptSegmentError as error:
            self.statistics.corrupt_segments += 1
            self.statistics.note(f"cache: a segment is corrupt ({error})")
            return False
        self.statistics.refused_records += contents.refused
        self._index(contents.records)
        return True

    def _index(self, records: Iterable[TuningRecord]) -> None:
        for record in records:
            self._records[record.key].append(record)
            kind = (record.shape.skeleton, record.key.target)
            self._shapes[kind][record.key.workload] = record.shape

    def _answer(self, key: WorkloadKey, shape: WorkloadShape) -> Lookup:
        exact = best(self._records.get(key, ()), _EXACT_RECORDS)
        if exact:
            self.statistics.exact += 1
            return ExactHit(exact)
        near = self._neighbours(key, shape)
        if near is not None:
            self.statistics.transfer += 1
            return near
        return self._missed("absent" if self._loaded.get(key.target) else "store-unavailable")

    def _neighbours(self, key: WorkloadKey, shape: WorkloadShape) -> TransferHit | None:
        shapes = self._shapes.get((shape.skeleton, key.target), {})
        found = nearest(shape.extents, ((w, s.extents) for w, s in shapes.items()))
        donors = [(d, WorkloadKey(w, key.target)) for d, w in found]
        records = [
            record
            for _, donor in donors
            for record in best(self._records[donor], RECORDS_OF_EACH)
            if record.template
        ]
        if not records:
            return None
        return TransferHit(tuple(donor for _, donor in donors), donors[0][0], tuple(records))

    def _missed(
        self, reason: Literal["absent", "corrupt", "rejected", "store-unavailable", "off"]
    ) -> Miss:
        self.statistics.misses[reason] += 1
        return Miss(reason)


def best(records: Iterable[TuningRecord], count: int) -> tuple[TuningRecord, ...]:
    """The fastest candidates, fastest first, each with its latest measurement."""
    latest: dict[tuple[str, tuple[object, ...]], TuningRecord] = {}
    for record in records:
        identity = (record.template, record.decisions)
        known = latest.get(identity)
        if known is None or record.measured_at >= known.measured_at:
            latest[identity] = record
    usable = [record for record in latest.values() if record.status == "ok"]
    return tuple(sorted(usable, key=lambda record: record.median_ms)[:count])
