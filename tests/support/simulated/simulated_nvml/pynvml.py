"""NVML without a GPU: the functions of nvidia-ml-py that we call, over a file
that says how the devices are.

The file is named by NVIDIA_SIMULATED_STATE, so that processes see one machine, as with the driver.
`tests/plugin/edges/nvidia/test_nvml.py` compares the names with those of the real binding.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
Facts = dict[str, Any]
Handle = tuple[int, int | None]


class NVMLError(Exception):
    pass


def nvmlInit() -> None:
    if not _file().exists():
        raise NVMLError("Driver Not Loaded")


def nvmlShutdown() -> None:
    pass


def nvmlDeviceGetCount() -> int:
    return len(_state()["gpus"])


def nvmlSystemGetDriverVersion() -> str:
    return str(_state()["driver"])


def nvmlDeviceGetHandleByIndex(index: int) -> Handle:
    if _state()["gpus"][index].get("is_lost"):
        raise NVMLError("GPU is lost")
    return (index, None)


def nvmlDeviceGetHandleByUUID(uuid: bytes) -> Handle:
    for index, gpu in enumerate(_state()["gpus"]):
        if gpu["uuid"] == uuid.decode():
            return (index, None)
        for number, part in enumerate(gpu.get("parts", [])):
            if part["uuid"] == uuid.decode():
                return (index, number)
    raise NVMLError("Not Found")


def nvmlDeviceGetMigMode(handle: Handle) -> list[int]:
    return [1, 1] if "parts" in _whole(handle) else [0, 0]


def nvmlDeviceGetMaxMigDeviceCount(handle: Handle) -> int:
    return 7


def nvmlDeviceGetMigDeviceHandleByIndex(handle: Handle, number: int) -> Handle:
    if number >= len(_whole(handle)["parts"]):
        raise NVMLError("Not Found")
    return (handle[0], number)


def nvmlDeviceGetName(handle: Handle) -> str:
    return str(_device(handle)["name"])


def nvmlDeviceGetUUID(handle: Handle) -> str:
    return str(_device(handle)["uuid"])


def nvmlDeviceGetNumGpuCores(handle: Handle) -> int:
    return int(_device(handle)["cores"])


def nvmlDeviceGetMemoryInfo(handle: Handle) -> SimpleNamespace:
    gpu = _device(handle)
    return SimpleNamespace(total=gpu["memory"], used=gpu.get("used", 0))


def nvmlDeviceGetCudaComputeCapability(handle: Handle) -> tuple[int, int]:
    major, minor = _whole(handle)["capability"]
    return major, minor


def nvmlDeviceGetEnforcedPowerLimit(handle: Handle) -> int:
    return int(_whole(handle)["power_cap"])


def nvmlDeviceGetPowerUsage(handle: Handle) -> int:
    return int(_whole(handle).get("power", 60_000))


def nvmlDeviceGetEccMode(handle: Handle) -> list[int]:
    raise NVMLError("Not Supported")


def nvmlDeviceGetTemperature(handle: Handle, sensor: int) -> int:
    return int(_whole(handle).get("celsius", 40))


def nvmlDeviceGetClockInfo(handle: Handle, clock: int) -> int:
    gpu = _whole(handle)
    return int(gpu["locked"][1] if gpu.get("locked") and clock == NVML_CLOCK_SM else gpu["mhz"])


def nvmlDeviceGetMaxClockInfo(handle: Handle, clock: int) -> int:
    return int(_whole(handle)["mhz"])


def nvmlDeviceGetCurrentClocksThrottleReasons(handle: Handle) -> int:
    return int(_whole(handle).get("reasons", 1))


def nvmlDeviceGetComputeRunningProcesses(handle: Handle) -> list[SimpleNamespace]:
    pids = _device(handle).get("processes", [])
    return [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in pids]


def nvmlDeviceGetUtilizationRates(handle: Handle) -> SimpleNamespace:
    return SimpleNamespace(gpu=_device(handle).get("busy", 0), memory=0)


def nvmlDeviceSetGpuLockedClocks(handle: Handle, low: int, high: int) -> None:
    def lock(gpu: Facts) -> None:
        if not gpu.get("may_lock", True):
            raise NVMLError("Insufficient Permissions")
        gpu["locked"] = [low, high]

    _change(handle, lock)


def nvmlDeviceResetGpuLockedClocks(handle: Handle) -> None:
    _change(handle, lambda gpu: gpu.pop("locked", None))


def _file() -> Path:
    return Path(os.environ.get("NVIDIA_SIMULATED_STATE", "/nowhere"))


def _state() -> Facts:
    state: Facts = json.loads(_file().read_text())
    return state


def _whole(handle: Handle) -> Facts:
    gpu: Facts = _state()["gpus"][handle[0]]
    return gpu


def _device(handle: Handle) -> Facts:
    whole = _whole(handle)
    part: Facts = whole if handle[1] is None else whole["parts"][handle[1]]
    return part


def _change(handle: Handle, change: Callable[[Facts], object]) -> None:
    with _file().with_suffix(".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        state = _state()
        change(state["gpus"][handle[0]])
        fresh = _file().with_suffix(".fresh")
        fresh.write_text(json.dumps(state))
        fresh.replace(_file())
