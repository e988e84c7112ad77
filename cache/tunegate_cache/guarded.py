"""A store behind a circuit breaker: a cache in trouble is left alone for the rest of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tunegate_cache.cache_statistics import CacheStatistics
from tunegate_cache.store import ObjectNotFoundError, ObjectStore, StoreUnavailableError

Answer = TypeVar("Answer")
_FAILURES_THAT_OPEN = 3


class GuardedStore:
    """Counts every request; after three failures in a row nothing is sent any more."""

    def __init__(self, store: ObjectStore, statistics: CacheStatistics) -> None:
        self._store, self._statistics = store, statistics
        self._failures = 0

    @property
    def is_open(self) -> bool:
        return self._failures >= _FAILURES_THAT_OPEN

    def read(self, name: str) -> bytes:
        body = self._ask("get", lambda: self._store.read(name))
        self._statistics.bytes_read += len(body)
        return body

    def write(self, name: str, body: bytes) -> None:
        self._ask("put", lambda: self._store.write(name, body))

    def names(self, prefix: str) -> Sequence[str]:
        return self._ask("list", lambda: self._store.names(prefix))

    def _ask(self, verb: str, request: Callable[[], Answer]) -> Answer:
        if self.is_open:
            message = "not asked again after three failures"
            raise StoreUnavailableError(message)
        self._statistics.requests[verb] += 1
        try:
            answer = request()
        except ObjectNotFoundError:
            self._failures = 0
            raise
        except StoreUnavailableError as error:
            self._failures += 1
            self._statistics.note(f"cache: {error}")
            raise
        self._failures = 0
        return answer


_: type[ObjectStore] = GuardedStore
