"""The shared cache as a run uses it: looks up many tasks at once, publishes what was learned.

Trouble never leaves here as an exception: it is a counted miss, or records that wait in the
write-ahead directory for the next run.
"""

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Literal

import msgspec

from tunegate_cache.format import names, segment
from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.format.model_standing import shape_of
from tunegate_cache.format.names import SegmentName
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    Lookup,
    Miss,
    Toolchain,
    TransferHit,
    TuningRecord,
    WorkloadKey,
    WorkloadShape,
)
from tunegate_cache.protocol import group_state
from tunegate_cache.protocol.trust import Trust
from tunegate_cache.protocol.uploads import Pending, UploadQueue, WriteAhead
from tunegate_cache.protocol.zone_records import ZoneRecords
from tunegate_cache.stores.circuit_breaking_store import CircuitBreakingStore
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.gather_with_deadline import gather_with_deadline
from tunegate_cache.stores.read_through import ReadThroughStore
from tunegate_cache.stores.store import ObjectStore

Mode = Literal["off", "ro", "rw"]


class Zones(msgspec.Struct, frozen=True):
    """The zone that a run writes to, and the zones that it trusts. What it writes to an untrusted
    zone is only a claim."""

    write: str
    believed: tuple[str, ...]

    @property
    def own_zones(self) -> tuple[str, ...]:
        """The written zone, if it is not trusted."""
        return () if self.write in self.believed else (self.write,)


class Seconds(msgspec.Struct, frozen=True):
    """The seconds that the cache may take: for one look-up, and for one publication."""

    lookup: float = 5.0
    publish: float = 10.0


MAX_RECORDS_OF_A_RUN = 20_000
_BUDGET = Seconds()


class TuningCache:
    """The cache as one run sees it. Segments are read once; published records are visible to later
    look-ups."""

    def __init__(
        self,
        store: ObjectStore,
        *,
        zones: Zones,
        mode: Mode,
        write_ahead: WriteAhead,
        monotonic: Callable[[], float],
        milliseconds: Callable[[], int],
        tier: FileStore | None = None,
        device: DeviceFingerprint | None = None,
        toolchain: Toolchain | None = None,
        budget: Seconds = _BUDGET,
        trust: Trust | None = None,
    ) -> None:
        """`tier` keeps local copies of a remote store; results from `device` come first, and among
        them those of `toolchain`."""
        trust = trust or Trust()
        self.statistics = CacheStatistics()
        guarded: ObjectStore = CircuitBreakingStore(store, self.statistics, monotonic)
        self._store = guarded if tier is None else ReadThroughStore(tier, guarded)
        self._zones, self._mode, self._write_ahead = zones, mode, write_ahead
        self._monotonic, self._milliseconds, self._budget = monotonic, milliseconds, budget
        self._writer = secrets.token_hex(4)
        self._trust = trust
        self._offered = self._enqueued = 0
        self._deliveries = UploadQueue(lambda pending: self._write(pending.name, pending.body))
        records = partial(
            ZoneRecords,
            self._store,
            trust=trust,
            statistics=self.statistics,
            monotonic=monotonic,
            device=device,
            toolchain=toolchain,
        )
        self._believed, self._own = records(zones.believed), records(zones.own_zones)
        self._left_seconds = budget.lookup

    def lookup(
        self,
        workloads: Sequence[tuple[WorkloadKey, WorkloadShape]],
        fastest: Mapping[WorkloadKey, int] | None = None,
    ) -> Mapping[WorkloadKey, Lookup]:
        """Returns an answer for every key, from the trusted zones. `fastest` is the least time in
        nanoseconds that a workload can take: records that claim less are rejected."""
        self._left_seconds = self._budget.lookup
        with self._looking_up() as deadline:
            if self._mode != "off":
                self._load(self._believed, workloads, deadline)
            self._believed.refuse_faster(fastest or {})
            return {key: self._answer(key, shape) for key, shape in dict(workloads).items()}

    def claims(
        self,
        workloads: Sequence[tuple[WorkloadKey, WorkloadShape]],
        fastest: Mapping[WorkloadKey, int] | None = None,
    ) -> Mapping[WorkloadKey, ExactHit | TransferHit]:
        """Returns the claims of the zone that this run writes without trusting it. Call it after
        `lookup`: it gets the rest of that time, so filling this zone cannot delay trusted
        answers."""
        if self._mode == "off" or not self._own.zones:
            return {}
        with self._looking_up() as deadline:
            self._load(self._own, workloads, deadline)
            self._own.refuse_faster(fastest or {})
            index = self._own.index
            hits = {k: index.exact(k) or index.transfer(k, s) for k, s in dict(workloads).items()}
            return {key: hit for key, hit in hits.items() if hit is not None}

    def standings(self, keys: Sequence[WorkloadKey]) -> Mapping[WorkloadKey, Lookup]:
        """Returns the trusted zones' records on whole models, within the rest of a look-up's time;
        nothing counts as a hit or miss."""
        if self._mode == "off" or not keys:
            return {}
        with self._looking_up() as deadline:
            self._load(self._believed, [(key, shape_of(key)) for key in keys], deadline)
        lookups = {key: self._believed.index.exact(key) for key in keys}
        return {key: hit for key, hit in lookups.items() if hit is not None}

    def targets(self) -> frozenset[str]:
        """Returns the key prefixes of all targets in the trusted zones, within the rest of a
        look-up's time."""
        if self._mode == "off":
            return frozenset()
        requests = {
            zone: partial(group_state.groups, self._store, zone) for zone in self._zones.believed
        }
        with self._looking_up() as deadline:
            answers = gather_with_deadline(requests, deadline=deadline, monotonic=self._monotonic)
            return frozenset(
                group.target
                for _, groups in answers
                if isinstance(groups, tuple)
                for group in groups
            )

    def publish(self, records: Sequence[TuningRecord]) -> bool:
        """Stores records as one segment per target (several if they are very many). Returns False
        if they are not stored, or only wait on this machine."""
        if not self._takes(records):
            return not records
        started = self._monotonic()
        packed = self._keep_locally(records)
        stored = self._deliver(packed, started + self._budget.publish)
        self.statistics.seconds += self._monotonic() - started
        self._note_waiting(is_all=stored)
        return stored

    def enqueue(self, records: Sequence[TuningRecord]) -> bool:
        """Takes records as `publish` does, without waiting for the store: they are then safe on
        this machine and on their way. Returns False if they will not be stored. Call `flush` at the
        end."""
        if not self._takes(records):
            return not records
        for pending in self._keep_locally(records):
            self._deliveries.start(pending)
        self._enqueued += len(records)
        return True

    def flush(self, seconds: float) -> int:
        """Returns the number of queued records that are not stored after `seconds`: they wait on
        this machine for the next run."""
        started = self._monotonic()
        is_all = self._deliveries.came_through(started + seconds, self._monotonic)
        self.statistics.seconds += self._monotonic() - started
        enqueued, self._enqueued = self._enqueued, 0
        self._note_waiting(is_all=is_all)
        return 0 if is_all else enqueued

    def _takes(self, records: Sequence[TuningRecord]) -> bool:
        if self._mode == "off" or not records:
            return False
        self._writable.index.add(records, self._zones.write)
        return self._mode == "rw" and self._is_trusted() and not self._is_too_much(records)

    def _is_trusted(self) -> bool:
        """Returns whether readers would use what this run writes: else it would be in their way."""
        zone = self._zones.write
        if self._trust.keys.is_signer(zone, self._trust.signer):
            return True
        self.statistics.note(
            f"cache: nothing is stored: zone {zone} trusts signed records alone, and this run has "
            "no key of it"
        )
        return False

    def _keep_locally(self, records: Sequence[TuningRecord]) -> list[Pending]:
        """Returns the records as segments, which are on this machine's disk."""
        packed = self._pack(records)
        for pending in packed:
            if not self._write_ahead.keep(pending.name, pending.body):
                self.statistics.note("cache: no room on this machine for records that must wait")
        return packed

    def _note_waiting(self, *, is_all: bool) -> None:
        if not is_all:
            self.statistics.note("cache: new records wait on this machine for the next run")

    def _is_too_much(self, records: Sequence[TuningRecord]) -> bool:
        """Returns whether the run writes too much: it would crowd out everybody else's records."""
        self._offered += len(records)
        if self._offered <= MAX_RECORDS_OF_A_RUN:
            return False
        self.statistics.note(
            f"cache: this run has more than {MAX_RECORDS_OF_A_RUN} "
            "records; the others are not stored"
        )
        return True

    @contextmanager
    def _looking_up(self) -> Iterator[float]:
        """Yields the deadline."""
        started = self._monotonic()
        yield started + self._left_seconds
        seconds = self._monotonic() - started
        self._left_seconds = max(0.0, self._left_seconds - seconds)
        self.statistics.seconds += seconds

    @property
    def _writable(self) -> ZoneRecords:
        """Returns the records of the zone that this run may write."""
        return self._own if self._own.zones else self._believed

    def _load(
        self,
        zones: ZoneRecords,
        workloads: Sequence[tuple[WorkloadKey, WorkloadShape]],
        deadline: float,
    ) -> None:
        waiting: Sequence[Pending] = ()
        if zones is self._writable and zones.is_new_to(workloads):
            waiting = list(self._waiting())
        zones.load(workloads, waiting, deadline, self._milliseconds() // 1000)
        if self._mode == "rw":
            self._deliver(waiting, deadline)

    def _waiting(self) -> Iterator[Pending]:
        """Yields what earlier runs could not deliver. The zone may have got keys since: then what
        is unsigned is signed now, and what no reader would trust goes on waiting."""
        zone, signer, keys = self._zones.write, self._trust.signer, self._trust.keys
        for old in self._write_ahead.pending(zone):
            each = old
            is_plain = keys.is_required(zone) and segment.signature_of(old.body) is None
            if is_plain and signer is not None and keys.is_signer(zone, signer):
                # The old name may be taken, if only the answer was lost.
                name = msgspec.structs.replace(old.name, writer=signer.key[:8])
                each = Pending(name, segment.signed(name, old.body, signer))
                if self._write_ahead.keep(each.name, each.body):
                    self._write_ahead.forget(old.name)
            if segment.is_trusted(each.name, each.body, keys):
                yield each
            else:
                why = f"no reader of zone {zone} would trust them; tunegate cache push signs them"
                self.statistics.note(f"cache: records wait on this machine: {why}")

    def _pack(self, records: Sequence[TuningRecord]) -> list[Pending]:
        by_target: dict[str, list[TuningRecord]] = defaultdict(list)
        for record in records:
            by_target[record.key.target].append(record)
        return [
            self._segment(target, batch)
            for target, of_target in by_target.items()
            for batch in segment.batches(of_target)
        ]

    def _segment(self, target: str, records: Sequence[TuningRecord]) -> Pending:
        body = segment.pack_segment(records)
        name = names.segment_name(
            self._zones.write,
            target,
            milliseconds=self._milliseconds(),
            writer=self._writer,
            digest=segment.segment_digest(body),
        )
        return Pending(name, segment.signed(name, body, self._trust.signer))

    def _deliver(self, waiting: Sequence[Pending], deadline: float) -> bool:
        requests = {p.name: partial(self._write, p.name, p.body) for p in waiting}
        answers = gather_with_deadline(requests, deadline=deadline, monotonic=self._monotonic)
        return sum(answer is None for _, answer in answers) == len(requests)

    def _write(self, name: SegmentName, body: bytes) -> None:
        """Writes a segment, and forgets the local copy even if the answer comes after the
        budget."""
        self._store.write(name.name, body)
        self._write_ahead.forget(name)

    def _answer(self, key: WorkloadKey, shape: WorkloadShape) -> Lookup:
        if self._mode == "off":
            hit: ExactHit | TransferHit | None = None
        else:
            index = self._believed.index
            hit = index.exact(key) or index.transfer(key, shape)
        match hit:
            case ExactHit():
                self.statistics.exact += 1
            case TransferHit():
                self.statistics.transfer += 1
            case None:
                return self._count_miss(key)
        best = hit.records[0]
        self.statistics.served[self._believed.index.zone_of(best), best.source.repository] += 1
        return hit

    def _count_miss(self, key: WorkloadKey) -> Miss:
        if self._mode == "off":
            self.statistics.misses["off"] += 1
            return Miss("off")
        reason = self._believed.trouble.miss_reason(key.workload, key.target)
        self.statistics.misses[reason] += 1
        return Miss(reason, self._believed.index.failures(key))
