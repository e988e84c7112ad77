"""The executors of a tuning run: its workers are on this machine, or on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tunegate.edges.machine.cores import usable_cores
from tunegate.edges.nvidia.measured_gpu import MeasuredGpu
from tunegate.engine.workers.spawning import spawn_pool
from tunegate.engine.workers.worker_pool import WorkerPool
from tunegate.tuning.expected_time import TargetKind


class Executor(Protocol):
    """Spawns pools. A candidate runs with one thread while tuning; `confirming_pool` is for
    the end, when a winner is measured with all the threads it will have, or None where one
    worker of the pool will do."""

    def pool(self) -> WorkerPool: ...
    def confirming_pool(self, threads: int) -> WorkerPool | None: ...


class LocalExecutor:
    """An executor on this machine: a worker for each core, and one for each GPU
    at least; each runs `program`."""

    def __init__(
        self,
        kind: TargetKind,
        gpus: Sequence[MeasuredGpu],
        directory: Path,
        program: str,
        *,
        are_held: bool = False,
    ) -> None:
        self._kind, self._gpus, self._directory = kind, gpus, directory
        self._program, self._are_held = program, are_held

    def pool(self) -> WorkerPool:
        return self._spawn(usable_cores(), threads=1)

    def confirming_pool(self, threads: int) -> WorkerPool | None:
        return None if threads == 1 or self._gpus else self._spawn(1, threads=threads)

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
