"""The only use of NVML. The module `pynvml` comes from the distribution nvidia-ml-py."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tunegate.artifacts.measurements import GpuState

Value = TypeVar("Value")


@contextmanager
def nvml() -> Iterator[Any | None]:
    """Yields the library between init and shutdown, None without a driver or binding."""
    library = _init_library()
    try:
        yield library
    finally:
        if library is not None:
            library.nvmlShutdown()


def answer_or_none(library: Any, question: Callable[..., Value], *about: Any) -> Value | None:
    """Returns the answer, None if this device, driver or permission gives none."""
    try:
        return question(*about)
    except library.NVMLError:
        return None


def text(value: str | bytes) -> str:
    """Returns the value as text: older bindings return bytes."""
    return value.decode() if isinstance(value, bytes) else value


def _init_library() -> Any | None:
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


# The current state of a GPU, by NVML.

_REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "temperature (software)",
    0x40: "temperature (hardware)",
    0x80: "power brake",
}
"""Bits of the clocks event reasons. Idle, set clocks and the display clock slow no running work
down."""


StateReader = Callable[[], GpuState | None]


def state_of(uuid: str) -> GpuState | None:
    """Returns the state of a device, None if it does not answer."""
    with watch_device(uuid) as look:
        return look()


@contextmanager
def watch_device(uuid: str) -> Iterator[StateReader]:
    """Yields a repeatable reading of a device: opening the driver's library takes longer than a
    reading."""
    with nvml() as library:
        handle = library and answer_or_none(
            library, library.nvmlDeviceGetHandleByUUID, uuid.encode()
        )
        yield lambda: None if handle is None else _state(library, handle)


def _state(library: Any, handle: Any) -> GpuState:
    milliwatts = answer_or_none(library, library.nvmlDeviceGetPowerUsage, handle)
    memory = answer_or_none(library, library.nvmlDeviceGetMemoryInfo, handle)
    processes = answer_or_none(library, library.nvmlDeviceGetComputeRunningProcesses, handle) or []
    rates = answer_or_none(library, library.nvmlDeviceGetUtilizationRates, handle)
    return GpuState(
        sm_mhz=answer_or_none(
            library, library.nvmlDeviceGetClockInfo, handle, library.NVML_CLOCK_SM
        ),
        memory_mhz=answer_or_none(
            library, library.nvmlDeviceGetClockInfo, handle, library.NVML_CLOCK_MEM
        ),
        celsius=answer_or_none(
            library, library.nvmlDeviceGetTemperature, handle, library.NVML_TEMPERATURE_GPU
        ),
        watts=None if milliwatts is None else milliwatts / 1000,
        used_bytes=None if memory is None else int(memory.used),
        busy_percent=None if rates is None else int(rates.gpu),
        throttled=_throttle_reasons(library, handle),
        processes=tuple(sorted(int(process.pid) for process in processes)),
    )


def _throttle_reasons(library: Any, handle: Any) -> tuple[str, ...]:
    bits = answer_or_none(library, library.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
    return tuple(name for bit, name in _REASONS.items() if bits & bit)


BusyMeter = Callable[[], float | None]
"""Returns the percentage of recent time in which devices ran anything, None if none reports it."""


@contextmanager
def busy_meter(uuids: Iterable[str]) -> Iterator[BusyMeter]:
    """Yields a meter of the mean over these devices; NVML averages a sixth of a second to a
    second."""
    with nvml() as library:
        handles_or_none = (
            answer_or_none(library, library.nvmlDeviceGetHandleByUUID, uuid.encode())
            for uuid in uuids
            if library is not None
        )
        handles = [each for each in handles_or_none if each is not None]

        def read() -> float | None:
            if library is None:
                return None
            rates = (
                answer_or_none(library, library.nvmlDeviceGetUtilizationRates, h) for h in handles
            )
            loads = [int(rate.gpu) for rate in rates if rate is not None]
            return sum(loads) / len(loads) if loads else None

        yield read
