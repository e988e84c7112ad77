"""The pool for a tuning run on the devices that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tunegate.edges.nvidia.cuda_toolkit import cuda_variables
from tunegate.edges.nvidia.measured_gpu import MeasuredGpu
from tunegate.edges.processes.child import Child
from tunegate.edges.processes.memory_limit import MemoryLimit, memory_limit
from tunegate.engine.placement import Placement
from tunegate.engine.protocol import Measured
from tunegate.engine.workers.device_slots import on_cpu, on_gpus, on_held_gpus
from tunegate.engine.workers.worker import Worker
from tunegate.engine.workers.worker_pool import WorkerPool
from tunegate.tuning.expected_time import TargetKind

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
    """A pool of so many workers that run `program`, or one for each GPU if those are
    more; candidates run with so many threads. GPUs that `are_held` by this run
    measure several candidates at once."""
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
    """The variables of every process that builds or measures candidates, wherever it is."""
    return {
        "TVM_NUM_THREADS": str(threads),
        "TVM_BIND_THREADS": "0",
        "OMP_NUM_THREADS": "1",
        **(cuda_variables() if kind == "cuda" else {}),
    }


def begin_child(
    program: str, variables: Mapping[str, str], memory: MemoryLimit, log: Path, place: Placement
) -> Worker:
    """A worker on this machine."""
    own = {**variables, **place.variables}
    return Child(program, Measured, variables=own, memory=memory, log=log)
