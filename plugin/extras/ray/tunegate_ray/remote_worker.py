"""A worker on another machine, with the interface of a child process."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tunegate.system.processes.child import ChildDiedError
from tunegate.tune.protocol import Measure, Measured
from tunegate.tune.workers import LostWorkerError, Worker
from tunegate_ray.door import Ray, first_line
from tunegate_ray.references import References

Call = Callable[[bytes, Any], Any]
"""A call with an encoded request and a reference (bytes, or where they are) that returns the
promise of a reply."""


class RemoteWorker:
    """`actors` are its own, and end with it; `started` is the promise that they run."""

    def __init__(
        self, ray: Ray, actors: Sequence[Any], call: Call, started: Any, references: References
    ) -> None:
        self._ray, self._actors, self._call, self.started = ray, actors, call, started
        self._references = references
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._bell_lock = threading.Lock()
        self._asked: Measure | None = None
        self._answer: Any = None
        self._node = ""
        self.busy_since: float | None = None

    @property
    def is_ready(self) -> bool:
        """Returns whether the worker has started or failed to: its first reply says which."""
        return self._ray.is_done(self.started)

    def fileno(self) -> int:
        """Returns a descriptor that is readable when a reply has come."""
        return self._bell

    def send(self, request: Measure) -> None:
        self.busy_since = time.monotonic()
        self._asked = request
        self._call_ray(lambda: setattr(self, "_node", self._ray.value(self.started).node))
        reference = self._references.of(request)
        self._answer = self._call(msgspec.msgpack.encode(request), reference)
        self._ray.when_done(self._answer, self._ring)

    def receive(self) -> Measured | None:
        if self._answer is None or not self._ray.is_done(self._answer):
            return None
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        answer = self._call_ray(lambda: self._ray.value(self._answer))
        self._answer, self.busy_since = None, None
        if self._asked is not None and answer.reference:
            self._references.keep(self._asked, answer.reference)
        return msgspec.msgpack.decode(answer.measured, type=Measured)

    def resident_bytes(self) -> int:
        """Returns 0: Ray limits the memory of its workers itself."""
        return 0

    def kill(self) -> None:
        for actor in self._actors:
            self._ray.kill(actor)
        with self._bell_lock:
            bell, self._bell = self._bell, -1
            if bell >= 0:
                os.close(bell)

    def _ring(self) -> None:
        """Rings the bell from a thread of Ray's, even for a reply that nobody awaits any more."""
        with self._bell_lock:
            if self._bell >= 0:
                os.eventfd_write(self._bell, 1)

    def _call_ray(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except self._ray.errors as error:
            reason = first_line(error)
            if self._ray.is_gone(self._node):
                raise LostWorkerError(reason) from error
            raise ChildDiedError(f"ended by the cluster ({reason})") from error


_: type[Worker] = RemoteWorker
