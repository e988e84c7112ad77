"""What zones that are not believed claim, beside what others answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.tuning_records import make_key, make_record, make_shape
from tunegate_cache.format.records import ExactHit, Lookup, Miss, TransferHit, TuningRecord
from tunegate_cache.protocol.tuning_cache import Seconds, TuningCache, Zones
from tunegate_cache.protocol.write_ahead import WriteAhead
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.store import ObjectStore

OWN = "pr/o/r/7"


def cache_over(
    store: ObjectStore,
    tmp_path: Path,
    *,
    zone: str = "main",
    lookup_seconds: float = 5.0,
    clock: Callable[[], float] = time.monotonic,
) -> TuningCache:
    return TuningCache(
        store,
        zones=Zones(zone, ("main",)),
        mode="rw",
        write_ahead=WriteAhead(tmp_path / "wal"),
        monotonic=clock,
        milliseconds=lambda: int(time.time() * 1000),
        budget=Seconds(lookup=lookup_seconds),
    )


def answer(cache: TuningCache, workload: str = "w", extents: tuple[int, ...] = (64, 64)) -> Lookup:
    key = make_key(workload)
    return cache.lookup([(key, make_shape(extents=extents))])[key]


def test_what_only_the_own_zone_knows_is_a_claim_and_no_answer(tmp_path: Path) -> None:
    store = MemoryStore()
    cache_over(store, tmp_path, zone=OWN).publish([make_record()])
    cache = cache_over(store, tmp_path, zone=OWN)
    assert answer(cache) == Miss("absent")
    assert claim(cache) == ExactHit((make_record(),))
    assert cache.statistics.exact == 0


def claim(cache: TuningCache, workload: str = "w") -> Lookup | None:
    key = make_key(workload)
    return cache.claims([(key, make_shape())]).get(key)


@pytest.mark.parametrize(
    "forged",
    [
        make_record(run_nanoseconds=(800_000,), decisions=((3, (1, 64)),)),
        make_record(run_nanoseconds=(9_000_000_000,), measured_at=2**40),
        make_record(run_nanoseconds=(), status="wrong", measured_at=2**40),
        make_record("near", shape=make_shape(extents=(64, 65))),
    ],
    ids=["faster", "the same but slower", "the same but wrong", "a nearer neighbour"],
)
def test_what_a_zone_claims_that_is_not_believed_changes_no_answer(
    tmp_path: Path, forged: TuningRecord
) -> None:
    store = MemoryStore()
    far = make_record("far", shape=make_shape(extents=(64, 4096)))
    cache_over(store, tmp_path).publish([make_record(), far])
    asked = ("w", "new")
    before = [answer(cache_over(store, tmp_path, zone=OWN), workload) for workload in asked]
    assert [type(hit) for hit in before] == [ExactHit, TransferHit]
    assert cache_over(store, tmp_path, zone=OWN).publish([forged])
    after = cache_over(store, tmp_path, zone=OWN)
    after.claims([(make_key(workload), make_shape()) for workload in asked])
    assert [answer(after, workload) for workload in asked] == before


def test_a_zone_that_is_believed_claims_nothing(tmp_path: Path) -> None:
    store = MemoryStore()
    cache_over(store, tmp_path).publish([make_record()])
    assert claim(cache_over(store, tmp_path)) is None
    assert claim(cache_over(store, tmp_path, zone=OWN)) is None


def test_claims_faster_than_any_hardware_are_refused(tmp_path: Path) -> None:
    store = MemoryStore()
    cache_over(store, tmp_path, zone=OWN).publish([make_record(run_nanoseconds=(10,))])
    cache = cache_over(store, tmp_path, zone=OWN)
    assert cache.claims([(make_key(), make_shape())], {make_key(): 11}) == {}


class HangingStore(MemoryStore):
    """Whatever it is asked for below a prefix hangs until the test lets it go."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self.prefix = prefix
        self.is_let_go = threading.Event()

    def names(self, prefix: str) -> Sequence[str]:
        if self.prefix in prefix:
            self.is_let_go.wait(120)
        return super().names(prefix)


def test_who_fills_the_own_zone_keeps_nobody_from_what_is_believed(tmp_path: Path) -> None:
    store = HangingStore(OWN)
    cache_over(store, tmp_path).publish([make_record()])
    cache = cache_over(store, tmp_path, zone=OWN, lookup_seconds=3.0)
    started = time.monotonic()
    assert answer(cache) == ExactHit((make_record(),))
    assert answer(cache, "new", (1, 2, 3)) == Miss("absent")
    assert claim(cache) is None
    assert time.monotonic() - started < 60  # the zone hangs all the while
    store.is_let_go.set()


def test_corrupt_objects_of_the_own_zone_are_no_reason_for_a_miss(tmp_path: Path) -> None:
    store = MemoryStore()
    cache_over(store, tmp_path, zone=OWN).publish([make_record()])
    for name in store.names(""):
        store.delete(name)
        store.write(name, b"junk")
    cache = cache_over(store, tmp_path, zone=OWN)
    assert claim(cache) is None
    assert answer(cache) == Miss("absent")


def test_both_questions_share_the_time_of_one_look_up(tmp_path: Path) -> None:
    now = [0.0]

    class TakesItAll(HangingStore):
        def names(self, prefix: str) -> Sequence[str]:
            now[0] = 2000.0
            return super().names(prefix)

    store = TakesItAll(OWN)
    cache = cache_over(store, tmp_path, zone=OWN, lookup_seconds=1000.0, clock=lambda: now[0])
    assert isinstance(answer(cache), Miss)
    started = time.monotonic()
    assert claim(cache) is None
    assert time.monotonic() - started < 60  # the zone hangs all the while
    store.is_let_go.set()
