"""Requests side by side, until all are answered or the time is over."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from tunegate_cache.store import ObjectNotFoundError, StoreUnavailableError

Name = TypeVar("Name")
Answer = TypeVar("Answer")
Trouble = ObjectNotFoundError | StoreUnavailableError

_THREADS = 16


def in_time(
    requests: Mapping[Name, Callable[[], Answer]],
    *,
    deadline: float,
    monotonic: Callable[[], float],
) -> Iterator[tuple[Name, Answer | Trouble]]:
    """Each answer as it comes, trouble of the store as a value. What is not answered by the
    deadline is left out, and left alone: a server that hangs keeps nobody waiting, not even the
    end of the process."""
    answers: queue.SimpleQueue[tuple[Name, Answer | Exception]] = queue.SimpleQueue()
    waiting = _Waiting(requests)
    for _ in range(min(_THREADS, len(requests))):
        threading.Thread(target=waiting.work, args=(answers.put,), daemon=True).start()
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


class _Waiting(Generic[Name, Answer]):
    """Requests that no thread has begun."""

    def __init__(self, requests: Mapping[Name, Callable[[], Answer]]) -> None:
        self._requests = deque(requests.items())

    def work(self, answered: Callable[[tuple[Name, Answer | Exception]], None]) -> None:
        while True:
            try:
                name, request = self._requests.popleft()
            except IndexError:
                return
            answered((name, _answer(request)))

    def drop(self) -> None:
        self._requests.clear()


def _answer(request: Callable[[], Answer]) -> Answer | Exception:
    try:
        return request()
    except Exception as error:  # noqa: BLE001 - it must not end with its thread: it is raised again
        return error
