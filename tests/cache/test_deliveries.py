"""Segments are delivered beside the run, whatever the store is doing."""

from __future__ import annotations

import threading
import time

import pytest

from tests.support.tuning_records import hexdigest
from tunegate_cache import names
from tunegate_cache.deliveries import Deliveries
from tunegate_cache.store import StoreBusyError, StoreUnavailableError
from tunegate_cache.write_ahead import Pending


def pending(number: int = 0) -> Pending:
    name = names.segment_name(
        "main", "a" * 64, milliseconds=number, writer="00000000", digest=hexdigest(str(number))
    )
    return Pending(name, b"")


def settled(deliveries: Deliveries, seconds: float = 5.0) -> bool:
    return deliveries.came_through(time.monotonic() + seconds, time.monotonic)


def test_nothing_to_deliver_has_come_through() -> None:
    assert settled(Deliveries(lambda _: None), seconds=0.0)


def test_starting_one_waits_for_nothing_and_settling_waits_for_all() -> None:
    written: list[Pending] = []
    gate = threading.Event()

    def write(each: Pending) -> None:
        gate.wait(10)
        written.append(each)

    deliveries = Deliveries(write)
    started = time.monotonic()
    for number in range(30):
        deliveries.start(pending(number))
    assert time.monotonic() - started < 5
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

    deliveries = Deliveries(write)
    deliveries.start(pending())
    assert not settled(deliveries)
    deliveries.start(pending())
    assert settled(deliveries)


def test_what_is_no_trouble_of_the_store_is_raised() -> None:
    def write(_: Pending) -> None:
        raise ZeroDivisionError

    deliveries = Deliveries(write)
    deliveries.start(pending())
    with pytest.raises(ZeroDivisionError):
        settled(deliveries)
