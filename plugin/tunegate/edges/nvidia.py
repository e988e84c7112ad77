"""NVIDIA devices through NVML. The module `pynvml` comes from the distribution nvidia-ml-py."""

from __future__ import annotations

from typing import Any

from tunegate_cache.records import DeviceFingerprint


def nvidia_fingerprint(index: int = 0) -> DeviceFingerprint | None:
    """The device with this index; None where there is no driver, no device or no NVML."""
    nvml = _nvml()
    if nvml is None:
        return None
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        return DeviceFingerprint(
            name=_text(nvml.nvmlDeviceGetName(handle)),
            kind="cuda",
            units=int(nvml.nvmlDeviceGetNumGpuCores(handle)),
            memory_bytes=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
            driver=_text(nvml.nvmlSystemGetDriverVersion()),
            uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
            clocks="floating",
        )
    except nvml.NVMLError:
        return None
    finally:
        nvml.nvmlShutdown()


def _nvml() -> Any | None:
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


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
