"""Claims of zones that are not believed, beside the answers of others."""

import hashlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cache.protocol.test_tuning_cache import answer
from tests.support.compacted_place import MAIN
from tests.support.tuning_caches import cache_over
from tests.support.tuning_records import TARGET, make_key, make_record, make_shape
from tunegate_cache.format.names import SegmentName, group_of, segment_name
from tunegate_cache.format.records import ExactHit, Lookup, Miss, TransferHit, TuningRecord
from tunegate_cache.format.segment import pack_segment, segment_digest
from tunegate_cache.protocol.archive import CorruptArchiveError, files, pack_archive, unpack_archive
from tunegate_cache.protocol.rollback_guard import RollbackGuard
from tunegate_cache.protocol.tuning_cache import Seconds, TuningCache
from tunegate_cache.stores.memory import MemoryStore

OWN = "pr/o/r/7"


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
    cache = cache_over(store, tmp_path, zone=OWN, budget=Seconds(lookup=3.0))
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
    cache = cache_over(
        store, tmp_path, zone=OWN, budget=Seconds(lookup=1000.0), monotonic=lambda: now[0]
    )
    assert isinstance(answer(cache), Miss)
    started = time.monotonic()
    assert claim(cache) is None
    assert time.monotonic() - started < 60  # the zone hangs all the while
    store.is_let_go.set()


def segment(workload: str) -> tuple[SegmentName, bytes]:
    body = pack_segment([make_record(workload)])
    name = segment_name("main", TARGET, milliseconds=1, writer="0" * 8, digest=segment_digest(body))
    return name, body


SEGMENTS = [segment("a"), segment("b")]
ARCHIVE = pack_archive(SEGMENTS)
DIGEST = hashlib.sha256(ARCHIVE).hexdigest()


def in_store(body: bytes) -> MemoryStore:
    store = MemoryStore()
    store.write("archive", body)
    return store


def test_an_archive_gives_back_every_segment_byte_for_byte() -> None:
    assert list(unpack_archive(ARCHIVE, DIGEST, MAIN)) == SEGMENTS
    assert pack_archive(SEGMENTS) == ARCHIVE


def test_what_an_archive_holds_is_seen_in_its_first_bytes() -> None:
    assert files(in_store(ARCHIVE), "archive") == {name.file for name, _ in SEGMENTS}


def test_a_directory_that_is_longer_than_the_first_read_is_read_whole() -> None:
    many = [segment(f"w{number}") for number in range(700)]
    body = pack_archive(many)
    assert body.index(b"]]") > 64 * 1024
    assert files(in_store(body), "archive") == {name.file for name, _ in many}


def test_content_that_its_name_does_not_prove_is_refused() -> None:
    with pytest.raises(CorruptArchiveError, match="not what its name says"):
        list(unpack_archive(ARCHIVE + b"x", DIGEST, MAIN))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not an archive"),
        (b"tunegate archive 1\n" + b"\xff" * 8, "not an archive"),
        (b"tunegate archive 1\n" + bytes(7) + b"\x02[1", "directory cannot be read"),
        # One segment under two names: under 100,000 it would be unpacked for hours.
        (ARCHIVE.replace(b",0,", b",9,", 1), "do not follow each other"),
    ],
)
def test_what_is_no_archive_is_refused_in_whole_and_in_part(body: bytes, said: str) -> None:
    with pytest.raises(CorruptArchiveError, match=said):
        list(unpack_archive(body, hashlib.sha256(body).hexdigest(), MAIN))
    with pytest.raises(CorruptArchiveError, match=said):
        files(in_store(body), "archive")


TEAM = group_of("team", TARGET)


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_version_is_older_once_a_later_one_was_seen(tmp_path: Path, is_kept: bool) -> None:
    guard = RollbackGuard(tmp_path / "seen.json" if is_kept else None)
    assert [guard.is_older(MAIN, version, 9) for version in (2, 2, 3, 2, 4, 10, 4)] == [
        False, False, False, True, False, False, False,
    ]  # fmt: skip
    assert not guard.is_older(TEAM, 1, 9)


def test_another_process_of_this_machine_knows_it_too(tmp_path: Path) -> None:
    file = tmp_path / "state" / "seen.json"
    RollbackGuard(file).is_older(MAIN, 7, 9)
    assert RollbackGuard(file).is_older(MAIN, 6, 9)
    assert not RollbackGuard(file).is_older(MAIN, 7, 9)


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[1]", b'{"a": "b"}', b'{"%s": 10}' % MAIN.prefix.encode()]
)
def test_a_damaged_file_is_no_file(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "seen.json"
    file.write_bytes(content)
    assert not RollbackGuard(file).is_older(MAIN, 1, 9)


def test_a_file_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    guard = RollbackGuard(tmp_path / "file" / "seen.json")
    assert not guard.is_older(MAIN, 2, 9)
    assert guard.is_older(MAIN, 1, 9)
