"""Counting, and when a store is left alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.stores.circuit_breaking_store import CircuitBreakingStore
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.store import (
    AccessDeniedError,
    ObjectConflictError,
    ObjectNotFoundError,
    StoreBusyError,
    StoreTimedOutError,
    StoreUnavailableError,
)


class MoodyStore(MemoryStore):
    """Raises what `mood` says before every request."""

    def __init__(self) -> None:
        super().__init__()
        self.mood: Exception | None = None
        self.asked = 0

    def _ask(self) -> None:
        self.asked += 1
        if self.mood is not None:
            raise self.mood

    def read(self, name: str) -> bytes:
        self._ask()
        return super().read(name)

    def write(self, name: str, body: bytes) -> None:
        self._ask()
        super().write(name, body)

    def names(self, prefix: str) -> Sequence[str]:
        self._ask()
        return super().names(prefix)


class Guarded:
    def __init__(self) -> None:
        self.inner, self.statistics = MoodyStore(), CacheStatistics()
        self.now = 0.0
        self.store = CircuitBreakingStore(self.inner, self.statistics, lambda: self.now)

    def list_in(self, mood: Exception, times: int) -> None:
        self.inner.mood = mood
        for _ in range(times):
            with pytest.raises(StoreUnavailableError):
                self.store.names("")
        self.inner.mood = None


TIMED_OUT = StoreTimedOutError("s3://b: ReadTimeoutError")


def test_requests_and_bytes_are_counted_by_verb() -> None:
    guarded = Guarded()
    guarded.store.write("a", b"12345")
    assert guarded.store.read("a") == b"12345"
    guarded.store.names("")
    assert guarded.statistics.requests == {"put": 1, "get": 1, "list": 1}
    assert (guarded.statistics.bytes_read, guarded.statistics.bytes_written) == (5, 5)


def test_after_three_timeouts_the_verb_is_left_alone_and_the_others_are_not() -> None:
    guarded = Guarded()
    guarded.list_in(TIMED_OUT, 3)
    with pytest.raises(StoreUnavailableError, match="to list failed too often"):
        guarded.store.names("")
    assert guarded.inner.asked == 3
    assert guarded.statistics.breaker_opened
    guarded.store.write("a", b"1")
    assert guarded.store.read("a") == b"1"


def test_a_minute_later_one_request_decides() -> None:
    guarded = Guarded()
    guarded.list_in(TIMED_OUT, 3)
    guarded.now = 61.0
    guarded.list_in(TIMED_OUT, 3)
    assert guarded.inner.asked == 4
    guarded.now = 123.0
    assert list(guarded.store.names("")) == []
    assert list(guarded.store.names("")) == []


def test_other_trouble_opens_after_eight_calls() -> None:
    for trouble in (StoreUnavailableError("s3://b: 500"), StoreBusyError("s3://b: SlowDown")):
        guarded = Guarded()
        guarded.list_in(trouble, 12)
        assert guarded.inner.asked == guarded.statistics.requests["list"] == 8


def test_a_missing_name_and_a_conflict_are_answers() -> None:
    guarded = Guarded()
    guarded.store.write("a", b"1")
    for _ in range(20):
        with pytest.raises(ObjectNotFoundError):
            guarded.store.read("absent")
        with pytest.raises(ObjectConflictError):
            guarded.store.write("a", b"2")
    assert guarded.store.read("a") == b"1"
    assert not guarded.statistics.breaker_opened


def test_a_refused_verb_is_not_asked_again_in_this_run_and_the_others_are() -> None:
    guarded = Guarded()
    guarded.inner.mood = AccessDeniedError("s3://b: AccessDenied")
    with pytest.raises(AccessDeniedError):
        guarded.store.write("a", b"1")
    guarded.inner.mood, guarded.now = None, 1e6
    with pytest.raises(StoreUnavailableError, match="to write was refused"):
        guarded.store.write("a", b"1")
    assert list(guarded.store.names("")) == []
    assert guarded.inner.asked == 2
    assert guarded.statistics.notes == (
        "cache: s3://b: AccessDenied; to write is not tried again in this run",
    )


def test_the_same_trouble_is_noted_once_and_so_is_what_became_of_it() -> None:
    guarded = Guarded()
    guarded.list_in(TIMED_OUT, 5)
    assert guarded.statistics.notes == (
        "cache: s3://b: ReadTimeoutError",
        "cache: to list failed too often and is left for 60 s at a time",
    )
