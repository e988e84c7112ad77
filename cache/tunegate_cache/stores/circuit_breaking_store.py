"""A store behind a circuit breaker: hopeless requests are no longer sent."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.stores.store import (
    AccessDeniedError,
    ObjectConflictError,
    ObjectNotFoundError,
    ObjectStore,
    Pointer,
    StoreBusyError,
    StoreTimedOutError,
    StoreUnavailableError,
)

_T = TypeVar("_T")
Verb = Literal["get", "put", "list"]
_WORDS: dict[Verb, str] = {"get": "read", "put": "write", "list": "list"}


class CircuitBreakingStore:
    """Counts every request. Each verb has its own breaker; a verb that was refused for lack of
    permission is not tried again in this run, but the others are."""

    def __init__(
        self, store: ObjectStore, statistics: CacheStatistics, monotonic: Callable[[], float]
    ) -> None:
        self._store, self._statistics = store, statistics
        self._breakers: dict[Verb, Breaker] = {verb: Breaker(monotonic) for verb in _WORDS}
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

    def _ask(self, verb: Verb, request: Callable[[], _T]) -> _T:
        ticket = self._begin(verb)
        try:
            answer = request()
        except (ObjectNotFoundError, ObjectConflictError):
            self._end(verb, ticket, "answered")
            raise
        except AccessDeniedError as error:
            self._refuse(verb, error)
            raise
        except StoreUnavailableError as error:
            self._statistics.note(f"cache: {error}")
            self._end(verb, ticket, _outcome(error))
            raise
        self._end(verb, ticket, "answered")
        return answer

    def _begin(self, verb: Verb) -> int:
        with self._lock:
            if verb in self._refused:
                message = f"to {_WORDS[verb]} was refused before and is not tried again"
                raise StoreUnavailableError(message)
            ticket = self._breakers[verb].admit()
            if ticket is None:
                message = f"to {_WORDS[verb]} failed too often and is not tried for now"
                raise StoreUnavailableError(message)
            self._statistics.requests[verb] += 1
            return ticket

    def _end(self, verb: Verb, ticket: int, outcome: CallOutcome) -> None:
        with self._lock:
            if self._breakers[verb].record(ticket, outcome):
                self._statistics.note(
                    f"cache: to {_WORDS[verb]} failed too often and is left for "
                    f"{OPEN_SECONDS:.0f} s at a time"
                )

    def _refuse(self, verb: Verb, error: AccessDeniedError) -> None:
        with self._lock:
            if verb not in self._refused:
                self._refused.add(verb)
                self._statistics.note(
                    f"cache: {error}; to {_WORDS[verb]} is not tried again in this run"
                )


def _outcome(error: StoreUnavailableError) -> CallOutcome:
    if isinstance(error, StoreTimedOutError):
        return "timed out"
    return "busy" if isinstance(error, StoreBusyError) else "failed"


_: type[ObjectStore] = CircuitBreakingStore


# Decides when to leave a failing store alone, and when to try it again.

CallOutcome = Literal["answered", "busy", "failed", "timed out"]

OPEN_SECONDS = 60.0
_ERRORS: dict[CallOutcome, float] = {"answered": 0.0, "busy": 0.5, "failed": 1.0, "timed out": 1.0}
_MIN_CALLS, _REMEMBERED_CALLS, _SHARE_OF_ERRORS = 8, 16, 0.5
_TIMEOUTS_IN_A_ROW = 3


class Breaker:
    """A breaker for one kind of request. It opens after three time-outs in a row, or if half of the
    last sixteen calls (at least eight) are errors; a server that asks for less counts as half an
    error. Once open it admits one trial per minute, and closes when a trial is answered.

    Calls begun before a change of state say nothing about the state after it. Use it under a lock
    of its owner.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._recent: deque[CallOutcome] = deque(maxlen=_REMEMBERED_CALLS)
        self._next_trial: float | None = None
        self._ticket = 0

    def admit(self) -> int | None:
        """Returns a ticket to hand to `record`, None if the request must not be sent."""
        if self._next_trial is None:
            return self._ticket
        if self._monotonic() < self._next_trial:
            return None
        self._open()
        return self._ticket

    def record(self, ticket: int, outcome: CallOutcome) -> bool:
        """Records the outcome of an admitted request, and returns whether this opened the
        breaker."""
        if ticket != self._ticket:
            return False
        if self._next_trial is None:
            self._recent.append(outcome)
            if self._is_in_trouble():
                self._open()
                return True
        elif outcome == "answered":
            self._close()
        else:
            self._open()
        return False

    def _is_in_trouble(self) -> bool:
        last = list(self._recent)[-_TIMEOUTS_IN_A_ROW:]
        if last == ["timed out"] * _TIMEOUTS_IN_A_ROW:
            return True
        errors = sum(_ERRORS[outcome] for outcome in self._recent)
        calls = len(self._recent)
        return calls >= _MIN_CALLS and errors >= _SHARE_OF_ERRORS * calls

    def _open(self) -> None:
        """Opens the breaker for a minute; a trial that never returns costs no more than that."""
        self._ticket += 1
        self._next_trial = self._monotonic() + OPEN_SECONDS

    def _close(self) -> None:
        self._ticket += 1
        self._next_trial = None
        self._recent.clear()
