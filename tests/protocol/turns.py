"""The real code under a scheduler: every call of the store is a step, and who takes the next one is
chosen by the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.store import (
    ObjectConflictError,
    ObjectNotFoundError,
    Pointer,
    PointerMovedError,
    StoreUnavailableError,
)

Name = TypeVar("Name")
Answer = TypeVar("Answer")
_PATIENCE_SECONDS = 30


class CrashedError(BaseException):
    """A process was killed. Nothing may catch it."""


class Process:
    """One thread that does nothing without a turn."""

    def __init__(self, name: str, work: Callable[[Process], None]) -> None:
        self.name = name
        self._turn = threading.Semaphore(0)
        self._parked = threading.Semaphore(0)
        self._crashing = False
        self.is_over = False
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()
        self.wait_until_parked()

    def step(self, *, crash: bool = False) -> None:
        """Let it do one call of the store, up to the next one."""
        self._crashing = crash
        self._turn.release()
        self.wait_until_parked()

    def pause(self) -> None:
        """Called in the process: give the turn back and wait for the next."""
        self._parked.release()
        assert self._turn.acquire(timeout=_PATIENCE_SECONDS)
        if self._crashing:
            raise CrashedError

    def wait_until_parked(self) -> None:
        assert self._parked.acquire(timeout=_PATIENCE_SECONDS), f"{self.name} hangs"

    def _run(self, work: Callable[[Process], None]) -> None:
        try:
            self.pause()
            work(self)
        except CrashedError:
            pass
        except BaseException as error:  # noqa: BLE001 -- the test raises it again
            self.failure = error
        finally:
            self.is_over = True
            self._parked.release()


class TurnStore:
    """One process's view of the common store: each call waits for a turn. `atomic` False is a
    server whose conditional writes check first and write later. `loses` says whether the answer of
    the next write is lost after it was done."""

    def __init__(
        self, store: MemoryStore, process: Process, *, atomic: bool, loses: Callable[[], bool]
    ) -> None:
        self._store, self._process = store, process
        self._atomic, self._loses = atomic, loses

    def read(self, name: str) -> bytes:
        self._process.pause()
        return self._store.read(name)

    def read_part(self, name: str, start: int, size: int) -> bytes:
        self._process.pause()
        return self._store.read_part(name, start, size)

    def names(self, prefix: str) -> Sequence[str]:
        self._process.pause()
        return self._store.names(prefix)

    def read_pointer(self, name: str) -> Pointer:
        self._process.pause()
        return self._store.read_pointer(name)

    def write(self, name: str, body: bytes) -> None:
        self._process.pause()
        self._store.write(name, body)
        if self._loses():
            message = "the answer is lost"
            raise StoreUnavailableError(message)

    def delete(self, name: str) -> None:
        self._process.pause()
        self._store.delete(name)

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        self._process.pause()
        if self._atomic:
            self._store.move_pointer(name, body, expected)
            return
        known = self._tag(name)
        if known != expected:
            raise PointerMovedError(name)
        self._process.pause()
        self._store.move_pointer(name, body, self._tag(name))

    def _tag(self, name: str) -> str | None:
        try:
            return self._store.read_pointer(name).tag
        except ObjectNotFoundError:
            return None


def in_turn(
    requests: Mapping[Name, Callable[[], Answer]],
    *,
    deadline: float,
    monotonic: Callable[[], float],
) -> Iterator[tuple[Name, Answer | Exception]]:
    """Replaces `in_time`, one request after the other: threads would not wait for their turn."""
    assert monotonic() <= deadline
    for name, request in requests.items():
        try:
            answer: Answer | Exception = request()
        except (ObjectNotFoundError, ObjectConflictError, StoreUnavailableError) as error:
            answer = error
        yield name, answer
