"""A store behind a circuit breaker: a cache in trouble is left alone for the rest of the run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from tunegate_cache.cache_statistics import CacheStatistics
from tunegate_cache.store import (
    AccessDeniedError,
    ObjectConflictError,
    ObjectNotFoundError,
    ObjectStore,
    Pointer,
    StoreUnavailableError,
)

Answer = TypeVar("Answer")
Verb = Literal["get", "put", "list"]
_FAILURES_THAT_OPEN = 3


class GuardedStore:
    """Counts every request. After three failures in a row nothing is sent any more; after a
    refusal, nothing that needs the same permission."""

    def __init__(self, store: ObjectStore, statistics: CacheStatistics) -> None:
        self._store, self._statistics = store, statistics
        self._failures = 0
        self._refused: set[Verb] = set()
        self._lock = threading.Lock()

    def read(self, name: str) -> bytes:
        body = self._ask("get", lambda: self._store.read(name))
        self._statistics.bytes_read += len(body)
        return body

    def write(self, name: str, body: bytes) -> None:
        self._ask("put", lambda: self._store.write(name, body))
        self._statistics.bytes_written += len(body)

    def names(self, prefix: str) -> Sequence[str]:
        return self._ask("list", lambda: self._store.names(prefix))

    def read_part(self, name: str, start: int, size: int) -> bytes:
        body = self._ask("get", lambda: self._store.read_part(name, start, size))
        self._statistics.bytes_read += len(body)
        return body

    def read_pointer(self, name: str) -> Pointer:
        return self._ask("get", lambda: self._store.read_pointer(name))

    def _ask(self, verb: Verb, request: Callable[[], Answer]) -> Answer:
        self._begin(verb)
        try:
            answer = request()
        except (ObjectNotFoundError, ObjectConflictError):
            self._succeeded()
            raise
        except StoreUnavailableError as error:
            self._failed(verb, error)
            raise
        self._succeeded()
        return answer

    def _begin(self, verb: Verb) -> None:
        with self._lock:
            if verb in self._refused:
                message = f"{verb} was refused before and is not asked again"
                raise StoreUnavailableError(message)
            if self._failures >= _FAILURES_THAT_OPEN:
                message = f"not asked again after {_FAILURES_THAT_OPEN} failures in a row"
                raise StoreUnavailableError(message)
            self._statistics.requests[verb] += 1

    def _succeeded(self) -> None:
        with self._lock:
            if self._failures < _FAILURES_THAT_OPEN:
                self._failures = 0

    def _failed(self, verb: Verb, error: StoreUnavailableError) -> None:
        with self._lock:
            self._statistics.note(f"cache: {error}")
            if isinstance(error, AccessDeniedError):
                self._refused.add(verb)
                return
            self._failures += 1
            if self._failures == _FAILURES_THAT_OPEN:
                self._statistics.breaker_opened = True


_: type[ObjectStore] = GuardedStore
