"""The device for the time of a build: TensorRT chooses kernels by timing them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tunegate.edges.machine.device_lock import claim_on, held_device
from tunegate.edges.nvidia.gpus import visible_gpus

_WAIT_SECONDS = 120.0


@contextmanager
def device_turn() -> Iterator[None]:
    """Holds the first GPU that this process sees against all others of this host; nothing where
    there is none. Raises EnvironmentUnfitError where others have it for too long."""
    first = next(iter(visible_gpus()), None)
    if first is None:
        yield
        return
    with held_device(claim_on(first.uuid, wait_seconds=_WAIT_SECONDS)):
        yield
