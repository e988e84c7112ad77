"""The only door to NVML. The module `pynvml` comes from the distribution nvidia-ml-py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tunegate.artifacts.measurements import GpuState

Value = TypeVar("Value")


@contextmanager
def nvml() -> Iterator[Any | None]:
    """The library between init and shutdown; None where there is no driver or no binding."""
    library = _initialized()
    try:
        yield library
    finally:
        if library is not None:
            library.nvmlShutdown()


def asked(library: Any, question: Callable[..., Value], *about: Any) -> Value | None:
    """The answer; None where this device, driver or permission has none."""
    try:
        return question(*about)
    except library.NVMLError:
        return None


def text(value: str | bytes) -> str:
    """Older bindings answer with bytes."""
    return value.decode() if isinstance(value, bytes) else value


def _initialized() -> Any | None:
    try:
        # An install extra: most machines that run the gate have no NVIDIA device.
        import pynvml  # noqa: PLC0415
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


# The present state of a GPU, read through NVML.

_REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "temperature (software)",
    0x40: "temperature (hardware)",
    0x80: "power brake",
}
"""Bits of the clocks event reasons. Idle, clocks that were set and the display clock slow nothing
down that runs."""


StateReader = Callable[[], GpuState | None]


def state_of(uuid: str) -> GpuState | None:
    """The state of a device, or None where it does not answer."""
    with watched(uuid) as look:
        return look()


@contextmanager
def watched(uuid: str) -> Iterator[StateReader]:
    """A reading of a device that can be repeated: opening the driver's
    library takes longer than a look."""
    with nvml() as library:
        handle = library and asked(library, library.nvmlDeviceGetHandleByUUID, uuid.encode())
        yield lambda: None if handle is None else _state(library, handle)


def _state(library: Any, handle: Any) -> GpuState:
    milliwatts = asked(library, library.nvmlDeviceGetPowerUsage, handle)
    memory = asked(library, library.nvmlDeviceGetMemoryInfo, handle)
    processes = asked(library, library.nvmlDeviceGetComputeRunningProcesses, handle) or []
    rates = asked(library, library.nvmlDeviceGetUtilizationRates, handle)
    return GpuState(
        sm_mhz=asked(library, library.nvmlDeviceGetClockInfo, handle, library.NVML_CLOCK_SM),
        memory_mhz=asked(library, library.nvmlDeviceGetClockInfo, handle, library.NVML_CLOCK_MEM),
        celsius=asked(
            library, library.nvmlDeviceGetTemperature, handle, library.NVML_TEMPERATURE_GPU
        ),
        watts=None if milliwatts is None else milliwatts / 1000,
        used_bytes=None if memory is None else int(memory.used),
        busy_percent=None if rates is None else int(rates.gpu),
        throttled=_throttled(library, handle),
        processes=tuple(sorted(int(process.pid) for process in processes)),
    )


def _throttled(library: Any, handle: Any) -> tuple[str, ...]:
    bits = asked(library, library.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
    return tuple(name for bit, name in _REASONS.items() if bits & bit)


BusyMeter = Callable[[], float | None]
"""Returns the percentage of a moment in which devices ran anything; None where none says."""


@contextmanager
def busy_meter(uuids: Iterable[str]) -> Iterator[BusyMeter]:
    """The mean over these devices, by NVML: of the last sixth of a second to one second."""
    with nvml() as library:
        found = (
            asked(library, library.nvmlDeviceGetHandleByUUID, uuid.encode())
            for uuid in uuids
            if library is not None
        )
        handles = [each for each in found if each is not None]

        def read() -> float | None:
            if library is None:
                return None
            rates = (asked(library, library.nvmlDeviceGetUtilizationRates, h) for h in handles)
            known = [int(each.gpu) for each in rates if each is not None]
            return sum(known) / len(known) if known else None

        yield read
