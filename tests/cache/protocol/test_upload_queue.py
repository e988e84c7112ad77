"""Segments are delivered beside the run, whatever the store is doing."""

import threading
import time
from pathlib import Path

import pytest

from tests.cache.protocol.test_tuning_cache import answer
from tests.support.tuning_caches import cache_over
from tests.support.tuning_records import TARGET, hexdigest, make_record
from tunegate_cache.format import names, segment
from tunegate_cache.format.names import SegmentName, segment_name
from tunegate_cache.format.records import ExactHit
from tunegate_cache.protocol.tuning_cache import Mode
from tunegate_cache.protocol.uploads import Pending, UploadQueue, WriteAhead
from tunegate_cache.stores.gather_with_deadline import answer_within
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.store import StoreBusyError, StoreUnavailableError


def pending(number: int = 0) -> Pending:
    name = names.segment_name(
        "main", "a" * 64, milliseconds=number, writer="00000000", digest=hexdigest(str(number))
    )
    return Pending(name, b"")


def settled(deliveries: UploadQueue, seconds: float = 60.0) -> bool:
    return deliveries.came_through(time.monotonic() + seconds, time.monotonic)


def test_starting_one_waits_for_nothing_and_settling_waits_for_all() -> None:
    written: list[Pending] = []
    gate = threading.Event()

    def write(each: Pending) -> None:
        gate.wait(120)
        written.append(each)

    deliveries = UploadQueue(write)
    for number in range(30):
        deliveries.start(pending(number))
    assert not written
    assert not settled(deliveries, seconds=0.05)
    gate.set()
    assert settled(deliveries)
    assert {each.name.milliseconds for each in written} == set(range(30))


def test_without_threads_everything_stays_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may allow a few processes only, and a thread is one."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    deliveries = UploadQueue(lambda _: None)
    deliveries.start(pending())
    assert not settled(deliveries)
    with pytest.raises(StoreUnavailableError, match="no thread"):
        answer_within(60.0, lambda: None)


@pytest.mark.parametrize("trouble", [StoreUnavailableError("down"), StoreBusyError("slow down")])
def test_trouble_of_the_store_is_told_once(trouble: Exception) -> None:
    troubles = [trouble]

    def write(_: Pending) -> None:
        if troubles:
            raise troubles.pop()

    deliveries = UploadQueue(write)
    deliveries.start(pending())
    assert not settled(deliveries)
    deliveries.start(pending())
    assert settled(deliveries)


def test_what_is_no_trouble_of_the_store_is_raised() -> None:
    def write(_: Pending) -> None:
        raise ZeroDivisionError

    deliveries = UploadQueue(write)
    deliveries.start(pending())
    with pytest.raises(ZeroDivisionError):
        settled(deliveries)


class SlowStore(MemoryStore):
    """Writes only when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = threading.Event()

    def write(self, name: str, body: bytes) -> None:
        self.is_open.wait(120)
        super().write(name, body)


def test_what_is_enqueued_is_safe_and_stored_when_the_store_is_ready(tmp_path: Path) -> None:
    store = SlowStore()
    cache = cache_over(store, tmp_path)
    assert cache.enqueue([make_record()])
    assert not store.names("")
    assert len(list(WriteAhead(tmp_path / "wal").pending("main"))) == 1  # a kill loses nothing now
    assert cache.flush(0.05) == 1
    assert "cache: new records wait on this machine for the next run" in cache.statistics.notes
    store.is_open.set()
    assert cache.enqueue([make_record("other")])
    assert cache.flush(60.0) == 0
    assert list(WriteAhead(tmp_path / "wal").pending("main")) == []
    fresh = cache_over(store, tmp_path)
    assert isinstance(answer(fresh), ExactHit)
    assert isinstance(answer(fresh, "other"), ExactHit)


@pytest.mark.parametrize("mode", ["ro", "off"])
def test_who_may_not_write_hands_nothing_in(tmp_path: Path, mode: Mode) -> None:
    cache = cache_over(MemoryStore(), tmp_path, mode=mode)
    assert not cache.enqueue([make_record()])
    assert cache.flush(1.0) == 0


# Records that wait for a store to come back.

BODY = segment.pack_segment([make_record()])


def name(milliseconds: int = 1, zone: str = "main", body: bytes = BODY) -> SegmentName:
    return segment_name(
        zone, TARGET, milliseconds=milliseconds, writer="0" * 8, digest=segment.segment_digest(body)
    )


def test_what_is_kept_is_pending_until_it_is_forgotten(tmp_path: Path) -> None:
    assert WriteAhead(tmp_path).keep(name(2), BODY)
    assert WriteAhead(tmp_path).keep(name(1), BODY)
    pending = list(WriteAhead(tmp_path).pending("main"))
    assert pending == [Pending(name(1), BODY), Pending(name(2), BODY)]
    WriteAhead(tmp_path).forget(name(1))
    assert list(WriteAhead(tmp_path).pending("main")) == [Pending(name(2), BODY)]


def test_another_zone_has_its_own(tmp_path: Path) -> None:
    WriteAhead(tmp_path).keep(name(zone="pr/o/r/7"), BODY)
    assert list(WriteAhead(tmp_path).pending("main")) == []
    assert len(list(WriteAhead(tmp_path).pending("pr/o/r/7"))) == 1


def test_a_damaged_file_is_dropped(tmp_path: Path) -> None:
    WriteAhead(tmp_path).keep(name(body=b"other"), BODY)
    assert list(WriteAhead(tmp_path).pending("main")) == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_unusable_directory_loses_the_net_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    waiting = WriteAhead(tmp_path / "file")
    assert not waiting.keep(name(), BODY)
    assert list(waiting.pending("main")) == []
    waiting.forget(name())
