"""Segments are delivered beside the run, whatever the store is doing."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.cache.protocol.test_tuning_cache import answer, cache_over
from tests.support.tuning_records import hexdigest, make_record
from tunegate_cache.format import names
from tunegate_cache.format.records import ExactHit
from tunegate_cache.protocol.tuning_cache import Mode
from tunegate_cache.protocol.upload_queue import UploadQueue
from tunegate_cache.protocol.write_ahead import Pending, WriteAhead
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.store import StoreBusyError, StoreUnavailableError


def pending(number: int = 0) -> Pending:
    name = names.segment_name(
        "main", "a" * 64, milliseconds=number, writer="00000000", digest=hexdigest(str(number))
    )
    return Pending(name, b"")


def settled(deliveries: UploadQueue, seconds: float = 60.0) -> bool:
    return deliveries.came_through(time.monotonic() + seconds, time.monotonic)


def test_nothing_to_deliver_has_come_through() -> None:
    assert settled(UploadQueue(lambda _: None), seconds=0.0)


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


def test_what_is_enqueued_is_safe_at_once_and_stored_when_the_store_is_ready(
    tmp_path: Path,
) -> None:
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
