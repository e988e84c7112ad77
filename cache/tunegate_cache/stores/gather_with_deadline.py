"""Runs requests concurrently until all are answered or the time is up."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from tunegate_cache.stores.store import (
    ObjectNotFoundError,
    StoreBusyError,
    StoreTimedOutError,
    StoreUnavailableError,
)

_Name = TypeVar("_Name")
_T = TypeVar("_T")
Trouble = ObjectNotFoundError | StoreUnavailableError

_THREADS = 16
NO_THREAD = "this machine lets no thread start (ulimit -u)"


def gather_with_deadline(
    requests: Mapping[_Name, Callable[[], _T]], *, deadline: float, monotonic: Callable[[], float]
) -> Iterator[tuple[_Name, _T | Trouble]]:
    """Yields each answer as it comes, store trouble as a value. Requests unanswered at the deadline
    are abandoned: a hanging server delays nobody, not even the end of the process. When a server
    asks for less, half of the running threads go on."""
    answers: queue.SimpleQueue[tuple[_Name, _T | Exception]] = queue.SimpleQueue()
    threads = min(_THREADS, len(requests))
    waiting = _Waiting(requests, threads)
    if not _start(waiting, threads, answers.put):
        yield from ((name, StoreUnavailableError(NO_THREAD)) for name in requests)
        return
    try:
        for _ in requests:
            name, answer = answers.get(timeout=max(0.0, deadline - monotonic()))
            if isinstance(answer, Exception) and not isinstance(answer, Trouble):
                raise answer
            yield name, answer
    except queue.Empty:
        return
    finally:
        waiting.drop()


def _start(
    waiting: _Waiting[_Name, _T],
    threads: int,
    answered: Callable[[tuple[_Name, _T | Exception]], None],
) -> bool:
    """Starts the threads, as many as the machine allows. Returns whether any has started."""
    for number in range(threads):
        try:
            threading.Thread(target=waiting.work, args=(answered,), daemon=True).start()
        except RuntimeError:
            return number > 0
    return True


def answer_within(seconds: float, request: Callable[[], _T]) -> _T:
    """Returns the answer to one request. Raises what it raises, and StoreTimedOutError after
    `seconds`, whatever the server sends meanwhile: then the request is abandoned."""
    deadline = time.monotonic() + seconds
    requests = {"": request}
    for _, answer in gather_with_deadline(requests, deadline=deadline, monotonic=time.monotonic):
        if isinstance(answer, Trouble):
            raise answer
        return answer
    message = "the answer takes too long"
    raise StoreTimedOutError(message)


class _Waiting(Generic[_Name, _T]):
    """Requests that no thread has begun."""

    def __init__(self, requests: Mapping[_Name, Callable[[], _T]], threads: int) -> None:
        self._requests = deque(requests.items())
        self._lock = threading.Lock()
        self._working = self._wanted = threads

    def work(self, answered: Callable[[tuple[_Name, _T | Exception]], None]) -> None:
        while True:
            try:
                name, request = self._requests.popleft()
            except IndexError:
                return
            answer = _answer(request)
            answered((name, answer))
            if self._is_one_too_many(is_busy=isinstance(answer, StoreBusyError)):
                return

    def _is_one_too_many(self, *, is_busy: bool) -> bool:
        with self._lock:
            if is_busy:
                self._wanted = max(1, self._working // 2)
            if self._working <= self._wanted:
                return False
            self._working -= 1
            return True

    def drop(self) -> None:
        self._requests.clear()


def _answer(request: Callable[[], _T]) -> _T | Exception:
    try:
        return request()
    except Exception as error:  # noqa: BLE001 - it must not end with its thread: it is raised again
        return error
