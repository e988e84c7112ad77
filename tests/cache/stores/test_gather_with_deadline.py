"""Requests side by side under a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tunegate_cache.stores.gather_with_deadline import gather_with_deadline
from tunegate_cache.stores.store import ObjectNotFoundError, StoreBusyError, StoreUnavailableError


def failing(error: Exception) -> Callable[[], str]:
    def request() -> str:
        raise error

    return request


def test_every_request_is_answered_once() -> None:
    requests = {number: (lambda number=number: number * 2) for number in range(100)}
    deadline = time.monotonic() + 60
    found = dict(gather_with_deadline(requests, deadline=deadline, monotonic=time.monotonic))
    assert found == {number: number * 2 for number in range(100)}


def test_nothing_asked_is_nothing_answered() -> None:
    assert list(gather_with_deadline({}, deadline=0.0, monotonic=time.monotonic)) == []


@pytest.mark.parametrize("trouble", [ObjectNotFoundError("x"), StoreUnavailableError("x")])
def test_trouble_of_the_store_is_a_value(trouble: Exception) -> None:
    requests = {"bad": failing(trouble), "good": lambda: "answer"}
    deadline = time.monotonic() + 60
    found = dict(gather_with_deadline(requests, deadline=deadline, monotonic=time.monotonic))
    assert found == {"bad": trouble, "good": "answer"}


def test_a_bug_is_raised_where_the_answers_are_read() -> None:
    requests = {"bad": failing(TypeError("a bug"))}
    with pytest.raises(TypeError, match="a bug"):
        list(
            gather_with_deadline(requests, deadline=time.monotonic() + 60, monotonic=time.monotonic)
        )


def test_what_hangs_is_left_behind_and_what_did_not_begin_never_does() -> None:
    release, begun = threading.Event(), []

    def hang() -> None:
        begun.append(1)
        release.wait(120)

    requests = dict.fromkeys(range(50), hang)
    deadline = time.monotonic() + 0.2
    assert list(gather_with_deadline(requests, deadline=deadline, monotonic=time.monotonic)) == []
    assert time.monotonic() < deadline + 60  # they hang all the while
    release.set()
    time.sleep(0.1)
    assert len(begun) < 50


def test_a_server_that_asks_for_less_is_asked_by_fewer_at_once() -> None:
    lock, is_crowded = threading.Lock(), threading.Event()
    running, most = [0], [0]
    is_busy = [True] * 8

    def request() -> str:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
            if most[0] > 8:
                is_crowded.set()
            busy = bool(is_busy) and is_busy.pop()
        is_crowded.wait(60)
        time.sleep(0.01)
        with lock:
            running[0] -= 1
            if not is_busy and not busy:
                most_after.append(running[0] + 1)
        if busy:
            raise StoreBusyError("slow down")
        return "answer"

    most_after: list[int] = []
    requests = dict.fromkeys(range(80), request)
    found = dict(
        gather_with_deadline(requests, deadline=time.monotonic() + 120, monotonic=time.monotonic)
    )
    assert len(found) == 80
    assert sum(isinstance(answer, StoreBusyError) for answer in found.values()) == 8
    assert most[0] > 8
    assert max(most_after[-20:]) <= 8
