"""An executor on a Ray cluster: builders on its CPUs, and measuring workers where the target is."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from tunegate.config import TargetConfig
from tunegate.errors import EnvironmentUnfitError
from tunegate.system.machine.device_lock import Claim
from tunegate.tune.protocol import Placement, Slot
from tunegate.tune.tuner import OpenCluster
from tunegate.tune.workers import Worker, WorkerPool, worker_variables
from tunegate_cache.format.records import DeviceFingerprint
from tunegate_ray.actors import BuildingWorker, MeasuringWorker, device_of
from tunegate_ray.door import Ray
from tunegate_ray.references import References
from tunegate_ray.remote_worker import RemoteWorker

_LIMIT_SECONDS = 60.0
"""Building, the wait for the node's device, measuring, and transfers."""
_FIRST_WORKER_SECONDS = 120.0
_PER_GPU = 2
"""Workers per GPU: while one measures, the other's candidate is loaded and its arguments are
made."""
_ON_THE_CLUSTER = Claim(uuid="cluster", directory="", wait_seconds=0.0)


class RayCluster:
    """A cluster of workers for one target that run `program`. The devices of all nodes must be
    alike: records name one."""

    def __init__(self, ray: Ray, target: TargetConfig, program: str) -> None:
        self._ray, self._target, self._program = ray, target, program
        self._references = References(ray)
        self._first: RemoteWorker | None = None

    def device(self) -> DeviceFingerprint:
        """Returns the device of the first worker that starts. Raises EnvironmentUnfitError if none
        does."""
        worker = self._worker(threads=1)
        try:
            if self._ray.first_of([worker.started], _FIRST_WORKER_SECONDS) is None:
                message = (
                    f"executor: ray, but no worker started in {_FIRST_WORKER_SECONDS:.0f} s: the "
                    f"cluster has {self._ray.resources()}. target {self._target.name} needs "
                    f"{'a GPU' if self._is_cuda else 'a CPU'}."
                )
                raise EnvironmentUnfitError(message)
            found = device_of(self._ray.value(worker.started))
        except self._ray.errors as error:
            reason = str(error).strip().splitlines()[-1][:300]
            message = f"executor: ray, but its workers do not start ({reason})."
            raise EnvironmentUnfitError(message) from error
        self._first = worker
        return found

    def pool(self) -> WorkerPool:
        """Returns a pool of as many workers as the cluster has room for now."""
        found = self._ray.resources()
        cpus = int(found.get("CPU", 0))
        workers = min(cpus, _PER_GPU * int(found.get("GPU", 0))) if self._is_cuda else cpus
        return self._spawn(max(1, workers), threads=1)

    def confirming_pool(self, threads: int) -> WorkerPool | None:
        return None if threads == 1 or self._is_cuda else self._spawn(1, threads=threads)

    def require_devices(self, reason: str) -> None:
        """Does nothing: the cluster removes a node that has lost its device."""

    def busy_percent(self) -> float | None:
        """Returns None: the devices belong to other machines."""
        return None

    def close(self) -> None:
        self._ray.close()

    @property
    def _is_cuda(self) -> bool:
        return self._target.kind == "cuda"

    def _spawn(self, size: int, *, threads: int) -> WorkerPool:
        # Every node has its own lock; for the pool the cluster is one device.
        place = Placement(slots=(Slot(claim=_ON_THE_CLUSTER),), limit_seconds=_LIMIT_SECONDS)
        return WorkerPool([place] * size, partial(self._begin, threads))

    def _begin(self, threads: int, _: Placement) -> Worker:
        """Returns a worker; the one that reported its device is the pool's first."""
        worker, self._first = self._first, None
        return worker or self._worker(threads=threads)

    def _worker(self, *, threads: int) -> RemoteWorker:
        variables = worker_variables(threads, self._target.kind)
        builder = self._ray.actor(BuildingWorker, self._program, variables, cpus=threads)
        if not self._is_cuda:
            return self._remote([builder], builder.handle_request.remote, builder.started.remote())
        target = msgspec.msgpack.encode(self._target)
        measurer = self._ray.actor(
            MeasuringWorker, self._program, variables, target, cpus=0, gpus=1 / _PER_GPU
        )

        def build_and_measure(request: bytes, reference: Any) -> Any:
            return measurer.handle_request.remote(
                request, reference, builder.library.remote(request)
            )

        return self._remote([builder, measurer], build_and_measure, measurer.started.remote())

    def _remote(self, actors: list[Any], call: Any, started: Any) -> RemoteWorker:
        return RemoteWorker(self._ray, actors, call, started, self._references)


def open_cluster(target: TargetConfig, program: str) -> RayCluster:
    """Returns the cluster of `RAY_ADDRESS`, or of this machine. Raises EnvironmentUnfitError."""
    return RayCluster(Ray(), target, program)


_: OpenCluster = open_cluster
