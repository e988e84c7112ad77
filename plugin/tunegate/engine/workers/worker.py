"""The contract between a pool and a worker, wherever it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tunegate.engine.placement import Placement
from tunegate.engine.protocol import Measure, Measured


class LostWorkerError(Exception):
    """The machine that it was on is gone: what it had to do is no candidate's fault."""


class Worker(Protocol):
    """Takes one request at a time. `send` and `receive` raise ChildDiedError when the worker is
    gone, and LostWorkerError when its machine is. `busy_since` is on the monotonic clock."""

    busy_since: float | None

    @property
    def is_ready(self) -> bool:
        """Returns whether the worker takes requests: False while it is still being started."""
        ...

    def fileno(self) -> int: ...
    def send(self, request: Measure) -> None: ...
    def receive(self) -> Measured | None: ...
    def resident_bytes(self) -> int: ...
    def kill(self) -> None: ...


Begin = Callable[[Placement], Worker]
"""Starts a worker at a place."""
