"""Look-up and publication over every kind of store and trouble."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cache.format.test_segment import KEYS, OURS, THEIRS
from tests.support.compacted_place import MAIN, NOBODY, Place
from tests.support.present import present
from tests.support.servers.black_hole import black_hole
from tests.support.servers.moto_server import BUCKET
from tests.support.tuning_caches import cache_over
from tests.support.tuning_records import hexdigest, make_key, make_record, make_shape
from tunegate_cache.format import names
from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.format.record_codec import RefusedLine
from tunegate_cache.format.records import ExactHit, Lookup, Miss, Provenance, TransferHit
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.format.segment import pack_segment, segment_digest
from tunegate_cache.protocol import tuning_cache
from tunegate_cache.protocol.group_state import current_head
from tunegate_cache.protocol.target_requests import ReadTrouble
from tunegate_cache.protocol.trust import Trust
from tunegate_cache.protocol.uploads import WriteAhead
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.open_store import UnusableStore
from tunegate_cache.stores.s3 import S3Store
from tunegate_cache.stores.store import StoreUnavailableError

BROKEN = UnusableStore("s3://b: AccessDenied")
"""A store that refuses everything, as one whose credentials have run out."""


class FullStore(MemoryStore):
    """A store that others have filled up to its quota."""

    is_full = False

    def write(self, name: str, body: bytes) -> None:
        if self.is_full:
            raise StoreUnavailableError("s3://b: QuotaExceeded")
        super().write(name, body)


def answer(
    cache: tuning_cache.TuningCache, workload: str = "w", extents: tuple[int, ...] = (64, 64)
) -> Lookup:
    key = make_key(workload)
    return cache.lookup([(key, make_shape(extents=extents))])[key]


def place_of(digest: str) -> str:
    """A name for a segment of `main`."""
    target = make_key().target
    name = names.segment_name("main", target, milliseconds=1, writer="0" * 8, digest=digest)
    return name.name


def test_a_store_that_others_have_filled_is_one_line_and_answers_as_before(tmp_path: Path) -> None:
    store = FullStore()
    assert cache_over(store, tmp_path).publish([make_record()])
    store.is_full = True
    cache = cache_over(store, tmp_path)
    assert isinstance(answer(cache), ExactHit)
    assert not cache.publish([make_record("new")])
    assert cache.enqueue([make_record("other")])
    assert cache.flush(60.0) == 1
    assert list(cache.statistics.notes) == [
        "cache: s3://b: QuotaExceeded",
        "cache: new records wait on this machine for the next run",
    ]
    store.is_full = False
    assert isinstance(answer(cache_over(store, tmp_path), "new"), ExactHit)
    assert len(store.names("ms1/z/main/")) == 3


def test_what_one_run_publishes_another_finds_best_first(tmp_path: Path) -> None:
    store = MemoryStore()
    slow = make_record(run_nanoseconds=(9_000_000,))
    fast = make_record(run_nanoseconds=(1_000_000,), decisions=((3, (8, 8)), (5, (0,))))
    assert cache_over(store, tmp_path).publish([slow, fast])
    cache = cache_over(store, tmp_path)
    assert answer(cache) == ExactHit((fast, slow))
    assert (cache.statistics.exact, cache.statistics.transfer) == (1, 0)


def test_the_nearest_shape_of_the_same_kind_is_a_transfer(tmp_path: Path) -> None:
    store = MemoryStore()
    near = make_record("near", shape=make_shape(extents=(64, 128)))
    far = make_record("far", shape=make_shape(extents=(64, 4096)))
    cache_over(store, tmp_path).publish([far, near])
    cache = cache_over(store, tmp_path)
    hit = answer(cache, "new", (64, 64))
    assert isinstance(hit, TransferHit)
    assert (cache.statistics.exact, cache.statistics.transfer) == (0, 1)
    assert (hit.source_workloads[0], hit.distance) == (near.key, 1.0)
    assert hit.records[0] == near


def test_another_skeleton_or_nothing_is_a_counted_miss(tmp_path: Path) -> None:
    store = MemoryStore()
    cache_over(store, tmp_path).publish([make_record("x", shape=make_shape("other"))])
    cache = cache_over(store, tmp_path)
    assert answer(cache) == Miss("absent")
    assert cache.statistics.misses == {"absent": 1}


def test_a_failed_candidate_is_kept_but_never_served(tmp_path: Path) -> None:
    store = MemoryStore()
    failed = make_record(status="wrong", run_nanoseconds=())
    cache_over(store, tmp_path).publish([failed])
    assert answer(cache_over(store, tmp_path)) == Miss("absent", (failed,))


def test_the_latest_measurement_of_a_candidate_counts(tmp_path: Path) -> None:
    lucky = make_record(run_nanoseconds=(1_000,), measured_at=1)
    confirmed = make_record(run_nanoseconds=(5_000,), measured_at=2)
    cache = cache_over(MemoryStore(), tmp_path)
    cache.publish([confirmed, lucky])
    assert answer(cache) == ExactHit((confirmed,))


def test_a_pull_request_writes_only_its_own_zone_and_main_never_reads_it(tmp_path: Path) -> None:
    store = MemoryStore()
    cache_over(store, tmp_path, zone="pr/o/r/7").publish([make_record()])
    assert all(name.startswith("ms1/z/pr/o/r/7/") for name in store.names(""))
    assert answer(cache_over(store, tmp_path)) == Miss("absent")
    assert answer(cache_over(store, tmp_path, zone="pr/o/r/7")) == Miss("absent")


def test_a_broken_store_is_a_miss_and_one_line_and_the_records_wait(tmp_path: Path) -> None:
    cache = cache_over(BROKEN, tmp_path)
    assert answer(cache) == Miss("store-unavailable")
    assert not cache.publish([make_record()])
    assert "cache: s3://b: AccessDenied" in cache.statistics.notes
    assert isinstance(answer(cache_over(MemoryStore(), tmp_path)), ExactHit)
    assert list(WriteAhead(tmp_path / "wal").pending("main")) == []


def test_after_eight_failures_the_store_is_left_alone(tmp_path: Path) -> None:
    cache = cache_over(BROKEN, tmp_path)
    for number in range(11):
        cache.publish([make_record(str(number))])
    assert cache.statistics.requests == {"put": 8}
    assert any("to write failed too often" in note for note in cache.statistics.notes)


@pytest.mark.parametrize("mode", ["ro", "off"])
def test_only_a_writing_run_writes(tmp_path: Path, mode: tuning_cache.Mode) -> None:
    store = MemoryStore()
    assert not cache_over(store, tmp_path, mode=mode).publish([make_record()])
    assert list(store.names("")) == []


def test_a_run_without_a_key_of_its_zone_stores_nothing_and_says_so(tmp_path: Path) -> None:
    for signer in (None, THEIRS, OURS):
        store = MemoryStore()
        cache = cache_over(store, tmp_path, trust=Trust(keys=KEYS, signer=signer))
        assert cache.publish([make_record()]) == (signer is OURS)
        assert isinstance(cache.lookup([(make_key(), make_shape())])[make_key()], ExactHit)
        assert bool(store.names("")) == (signer is OURS)
        assert any("this run has no key" in n for n in cache.statistics.notes) != (signer is OURS)


def test_what_waits_unsigned_is_signed_for_a_zone_that_has_got_keys(tmp_path: Path) -> None:
    """Without a key of it, or signed by another, it goes on waiting, and a line says so."""
    waiting = WriteAhead(tmp_path / "wal")
    for signer in (None, THEIRS):
        record = make_record("theirs" if signer else "w")
        cache_over(BROKEN, tmp_path, trust=Trust(signer=signer)).publish([record])
    store = MemoryStore()
    for signer, count in ((None, 2), (THEIRS, 2), (OURS, 1)):
        cache = cache_over(store, tmp_path, trust=Trust(keys=KEYS, signer=signer))
        assert isinstance(answer(cache), ExactHit) == (count == 1)
        assert len(list(waiting.pending("main"))) == count
        assert "tunegate cache push signs them" in cache.statistics.notes[0]
    assert len(store.names("")) == 1
    cache = cache_over(store, tmp_path / "another", trust=Trust(keys=KEYS))
    assert isinstance(answer(cache), ExactHit)


def test_what_waits_obeys_revocations_and_pins(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.archive(make_record("v"))
    place.compact([Revocation(run="1")])
    pins = {MAIN: present(current_head(place.store, MAIN, NOBODY).head).snapshot.index}
    for pinned in ({}, pins):
        bad = make_record(source=Provenance(run="1" if not pinned else ""))
        cache_over(BROKEN, tmp_path).publish([bad])
        cache = cache_over(place.store, tmp_path, trust=Trust(pins=pinned))
        assert not isinstance(answer(cache), ExactHit)
        assert isinstance(answer(cache, "v"), ExactHit)


def test_a_corrupt_segment_is_a_miss_and_costs_no_other(tmp_path: Path) -> None:
    store = MemoryStore()
    cache_over(store, tmp_path).publish([make_record()])
    store.write(place_of(hexdigest("x")), b"not what the name says")
    cache = cache_over(store, tmp_path)
    assert isinstance(answer(cache), ExactHit)
    assert any("cannot be used" in note for note in cache.statistics.notes)


def test_a_bad_record_in_a_good_segment_costs_itself_only(tmp_path: Path) -> None:
    store = MemoryStore()
    body = pack_segment([make_record(), make_record(run_nanoseconds=(-1,))])
    store.write(place_of(segment_digest(body)), body)
    cache = cache_over(store, tmp_path)
    assert answer(cache) == ExactHit((make_record(),))
    assert cache.statistics.refused == {"impossible time": 1}


def test_records_not_delivered_are_found_again_on_this_machine(tmp_path: Path) -> None:
    cache_over(BROKEN, tmp_path).publish([make_record()])
    assert answer(cache_over(BROKEN, tmp_path)) == ExactHit((make_record(),))


def test_a_run_that_may_not_write_still_finds_what_it_learned(tmp_path: Path) -> None:
    cache = cache_over(MemoryStore(), tmp_path, mode="ro")
    cache.publish([make_record()])
    assert answer(cache) == ExactHit((make_record(),))


def test_the_words_of_a_miss_tell_what_stood_in_the_way(tmp_path: Path) -> None:
    store = MemoryStore()
    cache_over(store, tmp_path).publish([make_record(run_nanoseconds=(0,))])
    assert answer(cache_over(store, tmp_path)) == Miss("rejected")
    assert answer(cache_over(store, tmp_path), "other") == Miss("absent")
    store.write(place_of(hexdigest("x")), b"damaged")
    assert answer(cache_over(store, tmp_path), "other") == Miss("corrupt")


def test_a_record_of_another_target_in_the_wrong_place_is_not_served(tmp_path: Path) -> None:
    store = MemoryStore()
    body = pack_segment([make_record(key=make_key(target="f" * 64))])
    store.write(place_of(segment_digest(body)), body)
    assert answer(cache_over(store, tmp_path)) == Miss("rejected")


def test_one_look_up_lists_each_zone_once_and_reads_each_segment_once(tmp_path: Path) -> None:
    store = MemoryStore()
    for number in range(3):
        cache_over(store, tmp_path).publish([make_record(str(number))])
    cache = cache_over(store, tmp_path, zone="dev/me")
    wanted = [(make_key(str(number)), make_shape()) for number in range(5)]
    for _ in range(2):
        cache.lookup(wanted)
        cache.claims(wanted)
    assert cache.statistics.requests == {"list": 2, "get": 3}  # three segments, no HEAD yet


def test_a_silent_server_costs_the_budget_and_no_more(tmp_path: Path, credentials: None) -> None:
    with black_hole() as url:
        store = S3Store(BUCKET, "", endpoint_url=url, region="us-east-1")
        budget = tuning_cache.Seconds(lookup=0.6, publish=0.6)
        cache = cache_over(store, tmp_path, budget=budget)
        started = time.monotonic()
        assert answer(cache) == Miss("store-unavailable")
        assert not cache.publish([make_record()])
        assert time.monotonic() - started < 60  # the server is silent all the while
    assert answer(cache_over(MemoryStore(), tmp_path)) == ExactHit((make_record(),))


def test_the_same_run_works_against_a_bucket_and_the_second_reads_from_disk(
    tmp_path: Path, bucket: S3Store
) -> None:
    assert cache_over(bucket, tmp_path / "a").publish([make_record()])
    tier = FileStore(tmp_path / "tier")
    first = cache_over(bucket, tmp_path / "b", tier=tier)
    assert answer(first) == ExactHit((make_record(),))
    assert first.statistics.requests == {"list": 1, "get": 1}
    second = cache_over(bucket, tmp_path / "b", tier=tier)
    assert answer(second) == ExactHit((make_record(),))
    assert second.statistics.requests == {"list": 1}


PUBLISH_FOR_EVER = """
import itertools, sys, time
from pathlib import Path
from tests.support.tuning_records import make_record
from tunegate_cache.stores.files import FileStore
from tunegate_cache.protocol.tuning_cache import TuningCache, Zones
from tunegate_cache.protocol.uploads import WriteAhead
root = Path(sys.argv[1])
cache = TuningCache(FileStore(root / "store"), zones=Zones("main", ("main",)), mode="rw",
    write_ahead=WriteAhead(root / "wal"), monotonic=time.monotonic,
    milliseconds=lambda: int(time.time() * 1000))
for number in itertools.count():
    assert cache.publish([make_record(sys.argv[2] + str(number))])
    print(number, flush=True)
"""


def test_no_acknowledged_record_is_lost_when_the_writers_are_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PUBLISH_FOR_EVER, str(tmp_path)]
    writers = [subprocess.Popen([*command, w], stdout=subprocess.PIPE, text=True) for w in "ab"]
    acknowledged = []
    for delay_seconds, letter, writer in zip((0.1, 0.3), "ab", writers, strict=True):
        with writer:
            assert writer.stdout is not None
            acknowledged.append(letter + writer.stdout.readline().strip())
            time.sleep(delay_seconds)
            writer.kill()
            acknowledged += [letter + line.strip() for line in writer.stdout]
    cache = cache_over(FileStore(tmp_path / "store"), tmp_path)
    found = cache.lookup([(make_key(workload), make_shape()) for workload in acknowledged])
    assert all(isinstance(lookup, ExactHit) for lookup in found.values())
    assert len(found) >= 2


def test_a_run_that_writes_without_end_is_stopped(tmp_path: Path) -> None:
    store = MemoryStore()
    cache = cache_over(store, tmp_path)
    assert cache.publish([make_record(run_nanoseconds=(n + 1,)) for n in range(2000)])
    assert not cache.publish([make_record("more")] * tuning_cache.MAX_RECORDS_OF_A_RUN)
    assert any("are not stored" in note for note in cache.statistics.notes)
    assert isinstance(answer(cache_over(store, tmp_path)), ExactHit)
    assert not isinstance(answer(cache_over(store, tmp_path), "more"), ExactHit)


def test_what_was_not_read_in_time_could_have_been_an_answer() -> None:
    statistics = CacheStatistics()
    trouble = ReadTrouble(statistics)
    trouble.of("late").note_late()
    trouble.of("many").note_uncompacted(9)
    assert {trouble.miss_reason("w", name) for name in ("late", "many")} == {"store-unavailable"}
    late, many = statistics.notes
    assert "could be read in time" in late
    assert "9 segments" in many
    assert "tunegate cache compact" in many


def test_a_refused_record_is_the_reason_of_its_workload_alone() -> None:
    statistics = CacheStatistics()
    trouble = ReadTrouble(statistics)
    trouble.of("t").refused(RefusedLine("another target", "w"))
    trouble.note_refused(RefusedLine("too fast", "x"), 3)
    assert statistics.refused == {"another target": 1, "too fast": 3}
    assert trouble.miss_reason("w", "t") == "rejected"
    assert trouble.miss_reason("v", "t") == "absent"


def test_corrupt_and_unsigned_objects_are_told_apart_and_named() -> None:
    statistics = CacheStatistics()
    trouble = ReadTrouble(statistics)
    trouble.of("t").corrupt("segment a", "cut short")
    trouble.of("u").note_unsigned("segment b")
    assert trouble.miss_reason("w", "another") == "absent"
    assert "segment a cannot be used (cut short)" in statistics.notes[0]
    assert "segment b is not signed" in statistics.notes[1]
    assert {trouble.miss_reason("w", name) for name in "tu"} == {"corrupt"}


def test_a_store_that_did_not_answer_is_the_likeliest_reason_of_all() -> None:
    trouble = ReadTrouble(CacheStatistics())
    trouble.of("t").corrupt("segment a", "cut short")
    trouble.note_refused(RefusedLine("too fast", "w"))
    assert trouble.miss_reason("w", "t") == "rejected"
    trouble.of("t").is_unavailable = True
    assert trouble.miss_reason("w", "t") == "store-unavailable"
