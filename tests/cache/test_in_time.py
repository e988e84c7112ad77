"""Requests side by side under a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tunegate_cache.in_time import in_time
from tunegate_cache.store import ObjectNotFoundError, StoreUnavailableError


def failing(error: Exception) -> Callable[[], str]:
    def request() -> str:
        raise error

    return request


def test_every_request_is_answered_once() -> None:
    requests = {number: (lambda number=number: number * 2) for number in range(100)}
    deadline = time.monotonic() + 5
    found = dict(in_time(requests, deadline=deadline, monotonic=time.monotonic))
    assert found == {number: number * 2 for number in range(100)}


def test_nothing_asked_is_nothing_answered() -> None:
    assert list(in_time({}, deadline=0.0, monotonic=time.monotonic)) == []


@pytest.mark.parametrize("trouble", [ObjectNotFoundError("x"), StoreUnavailableError("x")])
def test_trouble_of_the_store_is_a_value(trouble: Exception) -> None:
    requests = {"bad": failing(trouble), "good": lambda: "answer"}
    deadline = time.monotonic() + 5
    found = dict(in_time(requests, deadline=deadline, monotonic=time.monotonic))
    assert found == {"bad": trouble, "good": "answer"}


def test_a_bug_is_raised_where_the_answers_are_read() -> None:
    requests = {"bad": failing(TypeError("a bug"))}
    with pytest.raises(TypeError, match="a bug"):
        list(in_time(requests, deadline=time.monotonic() + 5, monotonic=time.monotonic))


def test_what_hangs_is_left_behind_and_what_did_not_begin_never_does() -> None:
    release, begun = threading.Event(), []

    def hang() -> None:
        begun.append(1)
        release.wait(10)

    started = time.monotonic()
    requests = dict.fromkeys(range(50), hang)
    assert list(in_time(requests, deadline=started + 0.2, monotonic=time.monotonic)) == []
    assert time.monotonic() - started < 2
    running = len(begun)
    release.set()
    time.sleep(0.1)
    assert len(begun) == running < 50
