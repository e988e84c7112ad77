"""One run of the cache over a store in trouble, another over the healthy store, and all that is
true in between."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from tests.support.tuning_records import make_record, make_shape
from tunegate_cache.format import names, segment
from tunegate_cache.format.records import Lookup, MissReason, TuningRecord, WorkloadKey
from tunegate_cache.protocol.tuning_cache import Seconds, TuningCache, Zones
from tunegate_cache.protocol.uploads import WriteAhead
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.store import ObjectStore

KNOWN = [make_record(name, shape=make_shape(name)) for name in ("first", "second")]
NEW = make_record("new", shape=make_shape("new"))
PATIENT = Seconds(lookup=60.0, publish=60.0)
"""Limits that even a slow machine keeps: a harmless fault must not fail."""
WANTED = [(record.key, record.shape) for record in KNOWN]


class Outcome(msgspec.Struct, frozen=True):
    """`stored` is what the bucket holds right after the run, `waiting` what the disk does."""

    budget: Seconds
    answers: Mapping[WorkloadKey, Lookup]
    misses: Mapping[MissReason, int]
    notes: tuple[str, ...]
    published: bool
    lookup_seconds: float
    publish_seconds: float
    stored: list[TuningRecord]
    waiting: list[TuningRecord]
    healed: Mapping[WorkloadKey, Lookup]
    stored_at_last: list[TuningRecord]
    waiting_at_last: list[TuningRecord]
    met: int


class Place:
    """A zone of the real bucket, seen directly, and the disk of a machine that uses it."""

    def __init__(self, direct: ObjectStore, zone: str, disk: Path) -> None:
        self.direct, self.zone = direct, zone
        self._tier, self._write_ahead = FileStore(disk / "tier"), WriteAhead(disk / "wal")

    def cache(self, store: ObjectStore, budget: Seconds) -> TuningCache:
        return TuningCache(
            store,
            zones=Zones(self.zone, (self.zone,)),
            mode="rw",
            write_ahead=self._write_ahead,
            monotonic=time.monotonic,
            milliseconds=lambda: int(time.time() * 1000),
            tier=self._tier,
            budget=budget,
        )

    def stored(self) -> list[TuningRecord]:
        prefix = f"{names.group_of(self.zone, NEW.key.target).prefix}seg/"
        bodies = [(name, self.direct.read(name)) for name in self.direct.names(prefix)]
        return [record for name, body in bodies for record in _records(name, body)]

    def waiting(self) -> list[TuningRecord]:
        pending = list(self._write_ahead.pending(self.zone))
        return [record for p in pending for record in _records(p.name.name, p.body)]

    def fill(self) -> None:
        for record in KNOWN:
            body = segment.pack_segment([record])
            name = names.segment_name(
                self.zone,
                record.key.target,
                milliseconds=1,
                writer="0" * 8,
                digest=segment.segment_digest(body),
            )
            self.direct.write(name.name, body)

    def run(self, store: ObjectStore, budget: Seconds, end: Callable[[], int]) -> Outcome:
        """One run over a store in trouble, and after the `end` of it another over a healthy one."""
        cache = self.cache(store, budget)
        started = time.monotonic()
        answers = cache.lookup(WANTED)
        looked_up = time.monotonic()
        published = cache.publish([NEW])
        ended = time.monotonic()
        waiting = self.waiting()
        stored = self.stored()  # last: what is delivered late leaves the disk after it is stored
        met = end()
        healed = self.cache(self.direct, PATIENT).lookup([*WANTED, (NEW.key, NEW.shape)])
        return Outcome(
            budget=budget,
            answers=answers,
            misses=cache.statistics.misses,
            notes=cache.statistics.notes,
            published=published,
            lookup_seconds=looked_up - started,
            publish_seconds=ended - looked_up,
            stored=stored,
            waiting=waiting,
            healed=healed,
            stored_at_last=self.stored(),
            waiting_at_last=self.waiting(),
            met=met,
        )


def _records(name: str, body: bytes) -> tuple[TuningRecord, ...]:
    parsed = names.parse_segment(name)
    assert parsed is not None
    return segment.unpack_segment(body, parsed.digest).records
