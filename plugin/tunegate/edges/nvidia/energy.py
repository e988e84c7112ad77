"""Energy of GPUs: NVML's counter of all that a device has used since its driver was loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tunegate.edges.nvidia.nvml import asked, nvml

_MILLI = 1e-3

JoulesReader = Callable[[], float | None]


@contextmanager
def counted_gpus(uuids: Sequence[str]) -> Iterator[JoulesReader]:
    """A reading of the devices' sum in joules that can be repeated; None where one of them does not
    count (before Volta)."""
    with nvml() as library:
        yield lambda: _sum([_used(library, uuid) for uuid in uuids])


def _sum(joules: Sequence[float | None]) -> float | None:
    known = [each for each in joules if each is not None]
    return sum(known) if known and len(known) == len(joules) else None


def _used(library: Any | None, uuid: str) -> float | None:
    """Joules since the driver was loaded; NVML counts millijoules."""
    if library is None:
        return None
    handle = asked(library, library.nvmlDeviceGetHandleByUUID, uuid.encode())
    if handle is None:
        return None
    used = asked(library, library.nvmlDeviceGetTotalEnergyConsumption, handle)
    return None if used is None else used * _MILLI
