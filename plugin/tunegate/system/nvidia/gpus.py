"""A GPU to measure on, and how to select it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tunegate.artifacts.candidates import FLOAT16, TFLOAT32
from tunegate.artifacts.measurements import Gpu
from tunegate.system.machine.device_lock import Claim
from tunegate.system.nvidia.nvml import answer_or_none, nvml, text
from tunegate_cache.format.records import DeviceFingerprint


class MeasuredGpu(msgspec.Struct, frozen=True):
    """A device, and the claim to hold while timing on it."""

    gpu: Gpu
    claim: Claim

    @property
    def variables(self) -> dict[str, str]:
        """Returns the variables of a process that may see only this device."""
        return variables_for(self.gpu)


def variables_for(gpu: Gpu) -> dict[str, str]:
    """Returns the same for a device that is not measured on."""
    return {"CUDA_VISIBLE_DEVICES": gpu.uuid, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


# The tensor cores that the compiler has instructions for.

_FIRST_WITHOUT = 9.0
"""From this capability on tensor cores reach their full rate by instructions that TVM lacks."""


def why_a_library_wins(precision: str, gpus: Sequence[Gpu]) -> str:
    """Returns why a library can beat TVM's products in this precision on the first of these GPUs,
    empty if nothing is known."""
    if precision not in {TFLOAT32, FLOAT16} or not gpus:
        return ""
    first = gpus[0]
    if float(first.compute_capability) < _FIRST_WITHOUT:
        return ""
    return (
        "kernels by TVM do not use the instructions for the full rate of the tensor cores of "
        f"{first.name} (wgmma), so a library can be faster in lower precision"
    )


# The GPUs for CUDA programs started here.

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def visible_gpus(variables: Mapping[str, str] = os.environ) -> tuple[Gpu, ...]:
    """Returns the GPUs in the order in which CUDA programs count them, none without a driver.

    `CUDA_VISIBLE_DEVICES` names them by index, or by the beginning of their UUID; what follows the
    first nonexistent one is invisible, as with CUDA itself.
    """
    with nvml() as library:
        if library is None:
            return ()
        count = answer_or_none(library, library.nvmlDeviceGetCount) or 0
        gpus = [gpu for index in range(count) for gpu in _gpus(library, index)]
    return _select_visible(gpus, variables.get(_VISIBLE))


def fingerprint_of(gpu: Gpu) -> DeviceFingerprint:
    """Returns the fingerprint of a GPU for records and reports."""
    return DeviceFingerprint(
        name=gpu.name,
        kind="cuda",
        units=gpu.cores,
        memory_bytes=gpu.memory_bytes,
        driver=gpu.driver,
        uuid=gpu.uuid,
        clocks="floating",
    )


def _gpus(library: Any, index: int) -> Iterator[Gpu]:
    """Yields the device at an index of the bus, or its partitions (MIG)."""
    whole = answer_or_none(library, library.nvmlDeviceGetHandleByIndex, index)
    if whole is None:
        return  # lost, or not ours to see
    mig = answer_or_none(library, library.nvmlDeviceGetMigMode, whole)
    if not mig or not mig[0]:
        handles = [whole]
    else:
        most = answer_or_none(library, library.nvmlDeviceGetMaxMigDeviceCount, whole) or 0
        part = library.nvmlDeviceGetMigDeviceHandleByIndex
        handles = [
            handle
            for number in range(most)
            if (handle := answer_or_none(library, part, whole, number)) is not None
        ]
    for handle in handles:
        gpu = answer_or_none(library, _gpu, library, index, whole, handle)
        if gpu is not None:
            yield gpu


def _gpu(library: Any, index: int, device: Any, handle: Any) -> Gpu:
    """Describes a GPU. `handle` is the device or a partition of it; clocks and power are the whole
    device's."""
    major, minor = library.nvmlDeviceGetCudaComputeCapability(device)
    milliwatts = answer_or_none(library, library.nvmlDeviceGetEnforcedPowerLimit, device)
    ecc = answer_or_none(library, library.nvmlDeviceGetEccMode, device)
    return Gpu(
        index=index,
        uuid=text(library.nvmlDeviceGetUUID(handle)),
        name=text(library.nvmlDeviceGetName(handle)),
        compute_capability=f"{major}.{minor}",
        cores=answer_or_none(library, library.nvmlDeviceGetNumGpuCores, handle) or 0,
        memory_bytes=int(library.nvmlDeviceGetMemoryInfo(handle).total),
        driver=text(library.nvmlSystemGetDriverVersion()),
        power_cap_watts=None if milliwatts is None else milliwatts / 1000,
        max_sm_mhz=answer_or_none(
            library, library.nvmlDeviceGetMaxClockInfo, device, library.NVML_CLOCK_SM
        ),
        is_part=handle is not device,
        ecc=None if ecc is None else bool(ecc[0]),
    )


def _select_visible(gpus: list[Gpu], visible: str | None) -> tuple[Gpu, ...]:
    if visible is None:
        return tuple(gpus)
    devices: list[Gpu] = []
    for name in (part.strip() for part in visible.split(",")):
        matches = [gpu for gpu in gpus if _is_called(gpu, name)]
        is_clear = len(matches) == 1 or (matches and name.isdigit())
        if not is_clear or matches[0] in devices:
            break
        devices.append(matches[0])
    return tuple(devices)


def _is_called(gpu: Gpu, name: str) -> bool:
    return name == str(gpu.index) if name.isdigit() else bool(name) and gpu.uuid.startswith(name)
