"""The workers of one tuning run: who measures what, who hangs, who is replaced."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tunegate.edges.child import Child, ChildDiedError
from tunegate.edges.device_lock import Claim
from tunegate.edges.memory_limit import resident_bytes
from tunegate.edges.metaschedule.messages import Measure, Measured
from tunegate.edges.metaschedule.places import Place

_MODULE = "tunegate.edges.metaschedule.worker"
_MOST_BYTES = 2 * 1024**3
"""LLVM and TVM keep what they compiled; a worker that has grown to this is replaced."""
_LOOK_EVERY = 8


class Crew:
    """Hands queued candidates to idle workers, one at each of the places. A worker that dies or outlasts
    the limit of its place costs the candidate it had, and is replaced."""

    def __init__(
        self,
        places: Sequence[Place],
        *,
        variables: Mapping[str, str],
        log: Path,
        module: str = _MODULE,
    ) -> None:
        self._module = module
        self._variables = dict(variables)
        self._log = log
        self._queue: deque[Measure] = deque()
        self._busy: dict[Child[Measured], Measure] = {}
        self._served: dict[Child[Measured], int] = {}
        self._places: dict[Child[Measured], Place] = {}
        self._lost: list[tuple[Measure, Measured]] = []
        for place in places:
            self._hire(place)

    @property
    def children(self) -> tuple[Child[Measured], ...]:
        return tuple(self._served)

    @property
    def slots(self) -> int:
        """How many candidates can be timed at once on one device."""
        return min(len(place.slots) for place in self._places.values())

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
            request = msgspec.structs.replace(self._queue.popleft(), place=self._places[child])
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
                self._bury(child, str(error))
                continue
            if measured is not None:
                del self._busy[child]
                finished.append((request, measured))
                self._retire(child)
            elif self._is_late(child):
                limit_seconds = self._places[child].limit_seconds
                self._lose(child, "timeout", f"no result in {limit_seconds:.0f} s")
        lost, self._lost = self._lost, []
        return finished + lost

    def keep_one_each(self) -> None:
        """Let all but one worker for each device go, the busy ones first: what they were at is given
        up."""
        kept: set[Claim] = set()
        for child in sorted(self._served, key=lambda child: child in self._busy):
            device = self._places[child].device
            if device in kept:
                self._busy.pop(child, None)
                self._dismiss(child)
            kept.add(device)

    def close(self) -> None:
        for child in tuple(self._served):
            self._dismiss(child)

    def _is_late(self, child: Child[Measured]) -> bool:
        return _busy_seconds(child) > self._places[child].limit_seconds

    def _bury(self, child: Child[Measured], obituary: str) -> None:
        """A worker that has watched its own time, and ended itself, was too late like any other."""
        own_limit = self._places[child].measuring_seconds
        if own_limit is not None and _busy_seconds(child) >= own_limit:
            self._lose(child, "timeout", f"no result in {own_limit:.0f} s")
        else:
            self._lose(child, "runtime", f"the worker was {obituary}")

    def _lose(self, child: Child[Measured], status: str, detail: str) -> None:
        request = self._busy.pop(child)
        measured = Measured(
            number=request.candidate.number,
            status="timeout" if status == "timeout" else "runtime",
            detail=detail,
            run_seconds=_busy_seconds(child),
        )
        self._lost.append((request, measured))
        self._replace(child)

    def _retire(self, child: Child[Measured]) -> None:
        self._served[child] += 1
        if self._served[child] % _LOOK_EVERY == 0 and resident_bytes(child.pid) > _MOST_BYTES:
            self._replace(child)

    def _replace(self, child: Child[Measured]) -> None:
        self._hire(self._dismiss(child))

    def _dismiss(self, child: Child[Measured]) -> Place:
        child.kill()
        del self._served[child]
        return self._places.pop(child)

    def _hire(self, place: Place) -> None:
        variables = {**self._variables, **place.variables}
        child = Child(self._module, Measured, variables=variables, log=self._log)
        self._served[child] = 0
        self._places[child] = place


def _busy_seconds(child: Child[Measured]) -> float:
    return 0.0 if child.busy_since is None else time.monotonic() - child.busy_since
