"""The workers of one tuning run: who measures what, who hangs, who is replaced."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path

from tunegate.edges.child import Child, ChildDiedError
from tunegate.edges.memory_limit import resident_bytes
from tunegate.edges.metaschedule.messages import Measure, Measured

_MODULE = "tunegate.edges.metaschedule.worker"
_MOST_BYTES = 2 * 1024**3
"""LLVM and TVM keep what they compiled; a worker that has grown to this is replaced."""
_LOOK_EVERY = 8


class Crew:
    """Hands queued candidates to idle workers. A worker that dies or outlasts the limit costs the
    candidate it had, and is replaced."""

    def __init__(
        self,
        size: int,
        *,
        variables: Mapping[str, str],
        log: Path,
        limit_seconds: float,
        module: str = _MODULE,
    ) -> None:
        self._module = module
        self._variables = dict(variables)
        self._log = log
        self._limit_seconds = limit_seconds
        self._queue: deque[Measure] = deque()
        self._busy: dict[Child[Measured], Measure] = {}
        self._served: dict[Child[Measured], int] = {}
        self._lost: list[tuple[Measure, Measured]] = []
        for _ in range(size):
            self._hire()

    @property
    def children(self) -> tuple[Child[Measured], ...]:
        return tuple(self._served)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def pending(self) -> int:
        return len(self._queue) + len(self._busy) + len(self._lost)

    def add(self, requests: Iterator[Measure] | list[Measure]) -> None:
        self._queue.extend(requests)

    def drop_waiting(self) -> list[Measure]:
        """What no worker has begun is given up, and returned."""
        dropped = list(self._queue)
        self._queue.clear()
        return dropped

    def dispatch(self) -> None:
        """Give every idle worker a candidate."""
        for child in list(self._served):
            if not self._queue:
                return
            if child in self._busy:
                continue
            request = self._queue.popleft()
            self._busy[child] = request
            try:
                child.send(request)
            except ChildDiedError as error:
                self._lose(child, "runtime", str(error))

    def collect(self) -> list[tuple[Measure, Measured]]:
        """What has finished, died or hung since the last call."""
        finished = []
        for child, request in list(self._busy.items()):
            try:
                measured = child.receive()
            except ChildDiedError as error:
                self._lose(child, "runtime", f"the worker was {error}")
                continue
            if measured is not None:
                del self._busy[child]
                finished.append((request, measured))
                self._retire(child)
            elif self._is_late(child):
                self._lose(child, "timeout", f"no result in {self._limit_seconds:.0f} s")
        lost, self._lost = self._lost, []
        return finished + lost

    def shrink(self, size: int) -> None:
        """Let all but `size` workers go, the busy ones first: what they were at is given up."""
        by_use = sorted(self._served, key=lambda child: child in self._busy)
        for child in by_use[size:]:
            self._busy.pop(child, None)
            del self._served[child]
            child.kill()

    def close(self) -> None:
        for child in self._served:
            child.kill()
        self._served.clear()

    def _is_late(self, child: Child[Measured]) -> bool:
        since = child.busy_since
        return since is not None and time.monotonic() - since > self._limit_seconds

    def _lose(self, child: Child[Measured], status: str, detail: str) -> None:
        request = self._busy.pop(child)
        measured = Measured(
            number=request.candidate.number,
            status="timeout" if status == "timeout" else "runtime",
            detail=detail,
            run_seconds=time.monotonic() - (child.busy_since or time.monotonic()),
        )
        self._lost.append((request, measured))
        self._replace(child)

    def _retire(self, child: Child[Measured]) -> None:
        self._served[child] += 1
        if self._served[child] % _LOOK_EVERY == 0 and resident_bytes(child.pid) > _MOST_BYTES:
            self._replace(child)

    def _replace(self, child: Child[Measured]) -> None:
        child.kill()
        del self._served[child]
        self._hire()

    def _hire(self) -> None:
        child = Child(self._module, Measured, variables=self._variables, log=self._log)
        self._served[child] = 0
