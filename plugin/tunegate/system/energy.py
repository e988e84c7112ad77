"""An implementation of `EnergyCounter`: this machine's processors and GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tunegate.artifacts.measurements import Gpu
from tunegate.config import LOCAL, Config
from tunegate.ports import NO_COUNTER, EnergyCounter, EnergyReading
from tunegate.system.nvidia.gpus import visible_gpus
from tunegate.system.nvidia.nvml import answer_or_none, nvml

# Energy of the processors: RAPL, as Linux shows it under /sys/class/powercap. Every package counts,
# and beside it its memory (`dram`), which no package includes. `core` and `uncore` are parts of a
# package, `psys` includes the packages, and `intel-rapl-mmio` shows the same packages again: none
# of these is added. AMD's counters have the same names.

POWERCAP = Path("/sys/class/powercap")
_ZONE = re.compile(r"intel-rapl:\d+(?::\d+)?")
_ADDED = re.compile(r"package-\d+(?:-die-\d+)?|dram")
_MICRO = 1e-6


class Rapl:
    """This machine's packages as one counter. It must be read before the shortest one wraps around:
    within a minute at hundreds of watts."""

    def __init__(self, powercap: Path = POWERCAP) -> None:
        self._zones = tuple(_zones(powercap))
        self._last = self._read_microjoules()
        self._microjoules = 0

    def joules(self) -> float | None:
        """Returns the sum since the beginning, None without a package or with an unreadable one."""
        now = self._read_microjoules()
        if now is None or self._last is None:
            self._last = None
            return None
        for zone, value in now.items():
            self._microjoules += _advance(self._last[zone], value, zone)
        self._last = now
        return self._microjoules * _MICRO

    def _read_microjoules(self) -> dict[Path, int] | None:
        values = {zone: _number(zone / "energy_uj") for zone in self._zones}
        known_values = {zone: value for zone, value in values.items() if value is not None}
        return known_values if known_values and len(known_values) == len(values) else None


def _zones(powercap: Path) -> Iterator[Path]:
    try:
        folders = sorted(powercap.iterdir())
    except OSError:
        return
    for zone in folders:
        if _ZONE.fullmatch(zone.name) and _ADDED.fullmatch(_text(zone / "name")):
            yield zone


def _advance(before: int, after: int, zone: Path) -> int:
    """Returns the difference. A counter that fell has wrapped from its largest value to 0."""
    if after >= before:
        return after - before
    largest = _number(zone / "max_energy_range_uj")
    return after if largest is None or largest < before else largest - before + after


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isascii() and text.isdigit() else None


def _text(path: Path) -> str:
    """Returns the text, '' if it is unreadable: the kernel lets only root read the counters."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


class MachineEnergy:
    """The processors by RAPL and the GPUs by NVML. If GPUs work their counter is required:
    processors alone are a small part of the energy."""

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
        joules = gpus - self._first
        if processors is None:
            return EnergyReading(joules, "nvml")
        return EnergyReading(joules + processors, "rapl+nvml")


@contextmanager
def energy_for(config: Config) -> Iterator[EnergyCounter]:
    """Yields this machine's counters for a run, none if a cluster's machines do the work."""
    if config.executor != LOCAL:
        yield NO_COUNTER
        return
    kinds = {target.kind for target in config.targets}
    with opened_energy(with_gpus="cuda" in kinds) as energy:
        yield energy


@contextmanager
def opened_energy(*, with_gpus: bool, powercap: Path = POWERCAP) -> Iterator[MachineEnergy]:
    """Yields this machine's counters, with those of its visible GPUs if they work."""
    processors = Rapl(powercap)
    if not with_gpus:
        yield MachineEnergy(processors)
        return
    with counted_gpus(_countable()) as gpus:
        yield MachineEnergy(processors, gpus)


@contextmanager
def device_energy(gpu: Gpu | None, powercap: Path = POWERCAP) -> Iterator[MachineEnergy]:
    """Yields the counters of the measured device: the processors, and this GPU."""
    processors = Rapl(powercap)
    if gpu is None:
        yield MachineEnergy(processors)
        return
    with counted_gpus([] if gpu.is_part else [gpu.uuid]) as gpus:
        yield MachineEnergy(processors, gpus)


def _countable() -> Sequence[str]:
    """Returns the devices whose counter is theirs alone."""
    gpus = visible_gpus()
    return () if any(gpu.is_part for gpu in gpus) else [gpu.uuid for gpu in gpus]


_: type[EnergyCounter] = MachineEnergy


# Energy of GPUs: NVML's counter of everything a device has used since its driver was loaded.

_MILLI = 1e-3

JoulesReader = Callable[[], float | None]


@contextmanager
def counted_gpus(uuids: Sequence[str]) -> Iterator[JoulesReader]:
    """Yields a repeatable reading of the devices' sum in joules; None if one does not count (before
    Volta)."""
    with nvml() as library:
        yield lambda: _sum([_joules_of(library, uuid) for uuid in uuids])


def _sum(joules: Sequence[float | None]) -> float | None:
    known_joules = [joule for joule in joules if joule is not None]
    return sum(known_joules) if known_joules and len(known_joules) == len(joules) else None


def _joules_of(library: Any | None, uuid: str) -> float | None:
    """Returns the joules since the driver was loaded; NVML counts millijoules."""
    if library is None:
        return None
    handle = answer_or_none(library, library.nvmlDeviceGetHandleByUUID, uuid.encode())
    if handle is None:
        return None
    millijoules = answer_or_none(library, library.nvmlDeviceGetTotalEnergyConsumption, handle)
    return None if millijoules is None else millijoules * _MILLI
