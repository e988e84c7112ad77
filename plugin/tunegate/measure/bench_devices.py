"""The device that an artifact is measured on: ours alone for the time of a measurement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tunegate.config import TargetConfig
from tunegate.errors import EnvironmentUnfitError, MeasurementError
from tunegate.ports import EnergyCounter
from tunegate.system.energy import POWERCAP, device_energy
from tunegate.system.machine.device_lock import held_device
from tunegate.system.nvidia.gpus import MeasuredGpu
from tunegate.system.nvidia.session import gpus_of, prepared
from tunegate.system.nvidia.state import StateReader, watched
from tunegate.system.output.artifact_file import ArtifactFile


class LeasedDevice(NamedTuple):
    """A device leased for a measurement: variables for the processes that measure on it, its
    present state, and the energy that it has used since. A CPU has no such state."""

    variables: dict[str, str]
    look: StateReader
    energy: EnergyCounter


class Devices:
    """The devices of a measurement; `cuda` is the target of artifacts for GPUs. The first matching
    device is used, so that all launches compare on one. `powercap` has the processors' counters."""

    def __init__(self, cuda: TargetConfig | None, powercap: Path = POWERCAP) -> None:
        self._powercap = powercap
        self._cuda = cuda or TargetConfig(name="cuda", kind="cuda")
        self._gpu: MeasuredGpu | None = None

    @contextmanager
    def of(self, *artifacts: Path) -> Iterator[LeasedDevice]:
        """A GPU is locked against all other users of this host meanwhile, and idle at the
        beginning. Raises MeasurementError where it is not to be had."""
        if all(ArtifactFile.read(path).device == "cpu" for path in artifacts):
            with device_energy(None, self._powercap) as energy:
                yield LeasedDevice({}, lambda: None, energy)
            return
        try:
            gpu = self._chosen()
            with (
                prepared([gpu], self._cuda),
                held_device(gpu.claim),
                watched(gpu.gpu.uuid) as look,
                device_energy(gpu.gpu, self._powercap) as energy,
            ):
                yield LeasedDevice(gpu.variables, look, energy)
        except EnvironmentUnfitError as error:
            raise MeasurementError(str(error)) from error

    def _chosen(self) -> MeasuredGpu:
        if self._gpu is None:
            self._gpu = gpus_of(self._cuda)[0]
        return self._gpu
