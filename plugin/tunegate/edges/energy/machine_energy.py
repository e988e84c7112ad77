"""An implementation of `EnergyCounter`: the processors of this machine, and its GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tunegate.artifacts.gpus import Gpu
from tunegate.config import LOCAL, Config
from tunegate.edges.energy.rapl import POWERCAP, Rapl
from tunegate.edges.nvidia.energy import JoulesReader, counted_gpus
from tunegate.edges.nvidia.gpus import visible_gpus
from tunegate.tuning.costs.energy_counter import NO_COUNTER, EnergyCounter, EnergyReading


class MachineEnergy:
    """The processors by RAPL and the GPUs by NVML. Where GPUs work their counter is needed:
    processors alone would count a small part of it."""

    def __init__(self, processors: Rapl, gpus: JoulesReader | None = None) -> None:
        self._processors, self._gpus = processors, gpus
        self._first = gpus() if gpus else None

    def reading(self) -> EnergyReading | None:
        processors = self._processors.joules()
        if self._gpus is None:
            return None if processors is None else EnergyReading(processors, "rapl")
        gpus = self._gpus()
        if gpus is None or self._first is None:
            return None
        used = gpus - self._first
        if processors is None:
            return EnergyReading(used, "nvml")
        return EnergyReading(used + processors, "rapl+nvml")


@contextmanager
def energy_for(config: Config) -> Iterator[EnergyCounter]:
    """This machine's counters for a run; none where the machines of a cluster do the work."""
    if config.executor != LOCAL:
        yield NO_COUNTER
        return
    kinds = {target.kind for target in config.targets}
    with opened_energy(with_gpus="cuda" in kinds) as energy:
        yield energy


@contextmanager
def opened_energy(*, with_gpus: bool, powercap: Path = POWERCAP) -> Iterator[MachineEnergy]:
    """The counters of this machine; with those of its visible GPUs where they work."""
    processors = Rapl(powercap)
    if not with_gpus:
        yield MachineEnergy(processors)
        return
    with counted_gpus(_countable()) as gpus:
        yield MachineEnergy(processors, gpus)


@contextmanager
def device_energy(gpu: Gpu | None, powercap: Path = POWERCAP) -> Iterator[MachineEnergy]:
    """The counters of the device that something is measured on: the processors, and this GPU."""
    processors = Rapl(powercap)
    if gpu is None:
        yield MachineEnergy(processors)
        return
    with counted_gpus([] if gpu.is_part else [gpu.uuid]) as gpus:
        yield MachineEnergy(processors, gpus)


def _countable() -> Sequence[str]:
    """The devices whose counter is theirs alone."""
    gpus = visible_gpus()
    return () if any(gpu.is_part for gpu in gpus) else [gpu.uuid for gpu in gpus]


_: type[EnergyCounter] = MachineEnergy
