"""The contract between a pool and a worker, wherever it runs."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from tunegate.errors import EnvironmentUnfitError
from tunegate.system.machine.cores import usable_cores
from tunegate.system.machine.device_lock import Claim
from tunegate.system.nvidia.cuda_toolkit import cuda_variables
from tunegate.system.nvidia.gpus import MeasuredGpu
from tunegate.system.nvidia.nvml import BusyMeter
from tunegate.system.nvidia.session import loss_among
from tunegate.system.processes.child import Child, ChildDiedError
from tunegate.system.processes.memory_limit import MemoryLimit, memory_limit
from tunegate.tune.device_slots import on_cpu, on_gpus, on_held_gpus
from tunegate.tune.expected_time import TargetKind
from tunegate.tune.protocol import Measure, Measured, Placement


class LostWorkerError(Exception):
    """The machine of the worker is gone. Its request is no candidate's fault."""


class Worker(Protocol):
    """Takes one request at a time. `send` and `receive` raise ChildDiedError if the worker is gone,
    and LostWorkerError if its machine is. `busy_since` is on the monotonic clock."""

    busy_since: float | None

    @property
    def is_ready(self) -> bool:
        """True if the worker takes requests. False while it starts."""
        ...

    def fileno(self) -> int: ...
    def send(self, request: Measure) -> None: ...
    def receive(self) -> Measured | None: ...
    def resident_bytes(self) -> int: ...
    def kill(self) -> None: ...


Begin = Callable[[Placement], Worker]
"""Starts a worker at a place."""


# The workers of one tuning run: dispatch, timeouts, replacement.

_MAX_MOVES = 2
_MAX_BYTES = 2 * 1024**3
"""LLVM and TVM keep what they compiled. A worker that has grown to this size is replaced."""
_LOOK_EVERY = 8


class WorkerPool:
    """Hands queued candidates to idle workers, one at each place. A worker that dies or exceeds its
    place's limit costs its candidate and is replaced. Work on a machine that is gone is tried
    elsewhere."""

    def __init__(self, places: Sequence[Placement], begin: Begin) -> None:
        self._begin = begin
        self._queue: deque[Measure] = deque()
        self._busy: dict[Worker, Measure] = {}
        self._served: dict[Worker, int] = {}
        self._places: dict[Worker, Placement] = {}
        self._lost: list[tuple[Measure, Measured]] = []
        self._moves: Counter[int] = Counter()
        for place in places:
            self._spawn(place)

    @property
    def children(self) -> tuple[Worker, ...]:
        return tuple(self._served)

    @property
    def slots(self) -> int:
        """The number of candidates that can be timed at once on one device."""
        return min(len(place.slots) for place in self._places.values())

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def has_idle(self) -> bool:
        """True if a worker has nothing to do."""
        return len(self._busy) < len(self._served)

    @property
    def pending(self) -> int:
        return len(self._queue) + len(self._busy) + len(self._lost)

    def add(self, requests: Iterator[Measure] | list[Measure]) -> None:
        self._queue.extend(requests)

    def drop_waiting(self) -> list[Measure]:
        """Drops the requests that no worker has begun, and returns them."""
        requests = list(self._queue)
        self._queue.clear()
        return requests

    def dispatch(self) -> None:
        """Gives every idle worker a candidate."""
        for worker in list(self._served):
            if not self._queue:
                return
            if worker in self._busy or not worker.is_ready:
                continue
            request = msgspec.structs.replace(self._queue.popleft(), place=self._places[worker])
            self._busy[worker] = request
            try:
                worker.send(request)
            except ChildDiedError as error:
                self._lose(worker, "runtime", str(error), from_outside=error.from_outside)
            except LostWorkerError as error:
                self._try_elsewhere(worker, str(error))

    def collect(self) -> list[tuple[Measure, Measured]]:
        """Returns the requests that finished, died or hung since the last call, with their
        results."""
        results = []
        for worker in tuple(self._busy):
            result = self._receive(worker)
            if result is not None:
                results.append((self._busy.pop(worker), result))
                self._retire(worker)
        lost_results, self._lost = self._lost, []
        return results + lost_results

    def keep_one_each(self) -> None:
        """Ends all but one worker for each device, busy ones first. Their requests are given up."""
        claims: set[Claim] = set()
        for worker in sorted(self._served, key=lambda worker: worker in self._busy):
            device = self._places[worker].device
            if device in claims:
                self._busy.pop(worker, None)
                self._dismiss(worker)
            claims.add(device)

    def close(self) -> None:
        for worker in tuple(self._served):
            self._dismiss(worker)

    def _receive(self, worker: Worker) -> Measured | None:
        """Returns what a worker has measured. One that died or hangs is replaced."""
        try:
            result = worker.receive()
        except ChildDiedError as error:
            self._on_exit(worker, error)
            return None
        except LostWorkerError as error:
            self._try_elsewhere(worker, str(error))
            return None
        limit_seconds = self._places[worker].limit_seconds
        if result is None and _busy_seconds(worker) > limit_seconds:
            self._lose(worker, "timeout", f"no result in {limit_seconds:.0f} s")
        return result

    def _on_exit(self, worker: Worker, error: ChildDiedError) -> None:
        """Returns the result for a worker that ended. One that ended itself by its own watch was
        too late like any other."""
        own_limit = self._busy[worker].watched_seconds
        if own_limit is not None and _busy_seconds(worker) >= own_limit:
            self._lose(worker, "timeout", f"no result in {own_limit:.0f} s")
        else:
            self._lose(
                worker,
                "runtime",
                f"the worker ended ({error})",
                has_killed_worker=True,
                from_outside=error.from_outside,
            )

    def _try_elsewhere(self, worker: Worker, reason: str) -> None:
        number = self._busy[worker].candidate.number
        self._moves[number] += 1
        if self._moves[number] > _MAX_MOVES:
            detail = f"its machine was lost {_MAX_MOVES + 1} times: {reason}"
            self._lose(worker, "runtime", detail, from_outside=True)
            return
        self._queue.appendleft(self._busy.pop(worker))
        self._replace(worker)

    def _lose(
        self,
        worker: Worker,
        status: Literal["timeout", "runtime"],
        detail: str,
        *,
        has_killed_worker: bool = False,
        from_outside: bool = False,
    ) -> None:
        request = self._busy.pop(worker)
        result = Measured(
            number=request.candidate.number,
            status=status,
            detail=detail,
            run_seconds=_busy_seconds(worker),
            has_killed_worker=has_killed_worker,
            from_outside=from_outside,
        )
        self._lost.append((request, result))
        self._replace(worker)

    def _retire(self, worker: Worker) -> None:
        self._served[worker] += 1
        if self._served[worker] % _LOOK_EVERY == 0 and worker.resident_bytes() > _MAX_BYTES:
            self._replace(worker)

    def _replace(self, worker: Worker) -> None:
        self._spawn(self._dismiss(worker))

    def _dismiss(self, worker: Worker) -> Placement:
        worker.kill()
        del self._served[worker]
        return self._places.pop(worker)

    def _spawn(self, place: Placement) -> None:
        worker = self._begin(place)
        self._served[worker] = 0
        self._places[worker] = place


def _busy_seconds(worker: Worker) -> float:
    return 0.0 if worker.busy_since is None else time.monotonic() - worker.busy_since


# The executors of a tuning run: its workers are on this machine, or on a cluster.


class Executor(Protocol):
    """Spawns pools. While tuning, a candidate runs with one thread. `confirming_pool` measures
    winners with all the threads that they will have, or is None if one worker of the pool can."""

    def pool(self) -> WorkerPool: ...
    def confirming_pool(self, threads: int) -> WorkerPool | None: ...
    def require_devices(self, reason: str) -> None:
        """Raises EnvironmentUnfitError if a device that candidates run on is gone. `reason` is why
        it is asked."""
        ...

    def busy_percent(self) -> float | None:
        """Returns how busy the GPUs were a moment ago, None if unknown."""
        ...


class LocalExecutor:
    """An executor on this machine: a worker for each core, and at least one for each GPU; each runs
    `program`."""

    def __init__(
        self,
        kind: TargetKind,
        gpus: Sequence[MeasuredGpu],
        directory: Path,
        program: str,
        *,
        are_held: bool = False,
        busy: BusyMeter = lambda: None,
    ) -> None:
        self._kind, self._gpus, self._directory = kind, gpus, directory
        self._program, self._are_held, self._busy = program, are_held, busy

    def pool(self) -> WorkerPool:
        return self._spawn(usable_cores(), threads=1)

    def confirming_pool(self, threads: int) -> WorkerPool | None:
        return None if threads == 1 or self._gpus else self._spawn(1, threads=threads)

    def require_devices(self, reason: str) -> None:
        if loss := loss_among([each.gpu for each in self._gpus], "while candidates ran", reason):
            raise EnvironmentUnfitError(loss)

    def busy_percent(self) -> float | None:
        return self._busy()

    def _spawn(self, size: int, *, threads: int) -> WorkerPool:
        return spawn_pool(
            size,
            self._program,
            threads=threads,
            kind=self._kind,
            gpus=self._gpus,
            directory=self._directory,
            are_held=self._are_held,
        )


_: type[Executor] = LocalExecutor


# The pool for a tuning run on its devices.

_CANDIDATE_LIMIT_SECONDS = 20.0
WORKERS_LOG = "workers.log"


def spawn_pool(
    size: int,
    program: str,
    *,
    threads: int,
    kind: TargetKind,
    gpus: Sequence[MeasuredGpu],
    directory: Path,
    are_held: bool = False,
) -> WorkerPool:
    """Returns a pool of `size` workers that run `program`, or one for each GPU if those are more.
    Candidates run with `threads` threads. GPUs that `are_held` by this run measure several
    candidates at once."""
    if gpus and are_held:
        places = on_held_gpus(size, gpus, directory, _CANDIDATE_LIMIT_SECONDS)
    elif gpus:
        places = on_gpus(size, gpus, _CANDIDATE_LIMIT_SECONDS)
    else:
        places = on_cpu(size, directory, _CANDIDATE_LIMIT_SECONDS)
    memory = memory_limit(kind, children=len(places))
    variables = worker_variables(threads, kind)
    return WorkerPool(
        places, partial(begin_child, program, variables, memory, directory / WORKERS_LOG)
    )


def worker_variables(threads: int, kind: TargetKind) -> dict[str, str]:
    """Returns the variables of every process that builds or measures candidates, on any machine."""
    return {
        "TVM_NUM_THREADS": str(threads),
        "TVM_BIND_THREADS": "0",
        "OMP_NUM_THREADS": "1",
        **(cuda_variables() if kind == "cuda" else {}),
    }


def begin_child(
    program: str, variables: Mapping[str, str], memory: MemoryLimit, log: Path, place: Placement
) -> Worker:
    """Starts a worker on this machine."""
    own = {**variables, **place.variables}
    return Child(program, Measured, variables=own, memory=memory, log=log)
