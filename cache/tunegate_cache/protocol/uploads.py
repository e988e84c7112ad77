"""Uploads segments, each in its own thread: a slow store delays nobody, not even the end of the
process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from tunegate_cache.format import segment
from tunegate_cache.format.names import SegmentName, parse_segment
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.gather_with_deadline import NO_THREAD
from tunegate_cache.stores.store import ObjectNotFoundError, StoreUnavailableError

_AT_ONCE = 8


class UploadQueue:
    """`write` stores one segment. One that fails stays where it was kept."""

    def __init__(self, write: Callable[[Pending], None]) -> None:
        self._write = write
        self._ended: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        self._waiting: queue.SimpleQueue[Pending] = queue.SimpleQueue()
        self._open = 0
        self._at_work = 0
        self._lock = threading.Lock()

    def start(self, pending: Pending) -> None:
        self._open += 1
        self._waiting.put(pending)
        with self._lock:
            if self._at_work == _AT_ONCE:
                return
            self._at_work += 1
        try:
            threading.Thread(target=self._work, daemon=True).start()
        except RuntimeError:
            self._do_without_thread()

    def came_through(self, deadline: float, monotonic: Callable[[], float]) -> bool:
        """Waits until the deadline for running uploads. Returns whether they all succeeded, with
        those that ended since the last call. Raises anything but store trouble."""
        troubles = 0
        while self._open:
            try:
                problem = self._ended.get(timeout=max(0.0, deadline - monotonic()))
            except queue.Empty:
                return False
            self._open -= 1
            if problem is not None and not isinstance(problem, StoreUnavailableError):
                raise problem
            troubles += problem is not None
        return not troubles

    def _do_without_thread(self) -> None:
        """Leaves the waiting ones to the threads that run, or where they were kept."""
        with self._lock:
            self._at_work -= 1
            while not self._at_work and not self._waiting.empty():
                self._waiting.get_nowait()
                self._ended.put(StoreUnavailableError(NO_THREAD))

    def _work(self) -> None:
        while True:
            with self._lock:
                try:
                    pending = self._waiting.get_nowait()
                except queue.Empty:
                    self._at_work -= 1
                    return
            self._ended.put(self._outcome(pending))

    def _outcome(self, pending: Pending) -> Exception | None:
        try:
            self._write(pending)
        except Exception as error:  # noqa: BLE001 -- it must not end with its thread: it is raised again
            return error
        return None


# Segments that are not acknowledged yet, kept on the local disk until they are.


class Pending(msgspec.Struct, frozen=True):
    name: SegmentName
    body: bytes


class WriteAhead:
    """A directory of pending segments, one per store. A full disk costs only this safety net:
    `keep` reports it and the run goes on."""

    def __init__(self, directory: Path) -> None:
        self._files = FileStore(directory)

    def keep(self, name: SegmentName, body: bytes) -> bool:
        try:
            self._files.write(name.name, body)
        except StoreUnavailableError:
            return False
        return True

    def forget(self, name: SegmentName) -> None:
        with suppress(StoreUnavailableError):
            self._files.delete(name.name)

    def pending(self, zone: str) -> Iterator[Pending]:
        """Yields what earlier runs could not deliver to the zone, oldest first."""
        try:
            files = self._files.names("")
        except StoreUnavailableError:
            return
        names = [name for name in map(parse_segment, files) if name and name.zone == zone]
        for name in sorted(names, key=lambda n: n.milliseconds):
            try:
                body = self._files.read(name.name)
            except (ObjectNotFoundError, StoreUnavailableError):
                continue  # another run delivered it in between
            if segment.segment_digest(body) == name.digest:
                yield Pending(name, body)
            else:
                self.forget(name)
