"""Counting, and when a store is left alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tunegate_cache.cache_statistics import CacheStatistics
from tunegate_cache.guarded import GuardedStore
from tunegate_cache.memory import MemoryStore
from tunegate_cache.store import (
    AccessDeniedError,
    ObjectConflictError,
    ObjectNotFoundError,
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
        self.store = GuardedStore(self.inner, self.statistics)

    def fail(self, times: int) -> None:
        self.inner.mood = StoreUnavailableError("s3://b: SlowDown")
        for _ in range(times):
            with pytest.raises(StoreUnavailableError):
                self.store.names("")
        self.inner.mood = None


def test_requests_and_bytes_are_counted_by_verb() -> None:
    guarded = Guarded()
    guarded.store.write("a", b"12345")
    assert guarded.store.read("a") == b"12345"
    guarded.store.names("")
    assert guarded.statistics.requests == {"put": 1, "get": 1, "list": 1}
    assert (guarded.statistics.bytes_read, guarded.statistics.bytes_written) == (5, 5)


def test_after_three_failures_in_a_row_the_store_is_left_alone() -> None:
    guarded = Guarded()
    guarded.fail(3)
    with pytest.raises(StoreUnavailableError, match="after 3 failures"):
        guarded.store.read("a")
    assert guarded.inner.asked == 3
    assert guarded.statistics.breaker_opened


def test_an_answer_in_between_starts_the_count_again() -> None:
    guarded = Guarded()
    guarded.fail(2)
    with pytest.raises(ObjectNotFoundError):
        guarded.store.read("absent")
    guarded.fail(2)
    assert list(guarded.store.names("")) == []
    assert not guarded.statistics.breaker_opened


def test_a_conflict_is_an_answer_too() -> None:
    guarded = Guarded()
    guarded.store.write("a", b"1")
    for _ in range(4):
        with pytest.raises(ObjectConflictError):
            guarded.store.write("a", b"2")
    assert guarded.store.read("a") == b"1"


def test_a_refused_verb_is_not_asked_again_and_the_others_are() -> None:
    guarded = Guarded()
    guarded.inner.mood = AccessDeniedError("s3://b: AccessDenied")
    with pytest.raises(AccessDeniedError):
        guarded.store.write("a", b"1")
    guarded.inner.mood = None
    with pytest.raises(StoreUnavailableError, match="put was refused"):
        guarded.store.write("a", b"1")
    assert list(guarded.store.names("")) == []
    assert guarded.inner.asked == 2


def test_the_same_trouble_is_noted_once() -> None:
    guarded = Guarded()
    guarded.fail(3)
    assert guarded.statistics.notes == ("cache: s3://b: SlowDown",)
