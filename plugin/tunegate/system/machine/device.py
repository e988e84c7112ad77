"""An implementation of `ports.Device`: what this machine is, and what disturbs it."""

import hashlib
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import psutil

from tunegate.artifacts.measurements import Gpu, GpuState
from tunegate.ports import Device
from tunegate.system.machine.cores import usable_cores
from tunegate.system.nvidia.gpus import fingerprint_of, visible_gpus
from tunegate.system.nvidia.nvml import state_of
from tunegate_cache.format.records import DeviceFingerprint

_CPUINFO = Path("/proc/cpuinfo")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_STAT = Path("/proc/stat")
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_STEAL_FIELD = 8
NO_VERSIONS: Mapping[str, str] = MappingProxyType({})


class ThisMachine:
    """`kind` is the kind of the targets that run here, whose device is named. `versions` are those
    of the packages that decide what runs, for the report."""

    def __init__(self, kind: str, versions: Mapping[str, str] = NO_VERSIONS) -> None:
        self._kind, self._versions = kind, versions

    def fingerprint(self) -> DeviceFingerprint:
        gpus = visible_gpus() if self._kind == "cuda" else ()
        if gpus:
            return fingerprint_of(gpus[0])
        return DeviceFingerprint(
            name=_cpu_name(),
            kind="cpu",
            units=usable_cores(),
            memory_bytes=psutil.virtual_memory().total,
        )

    def machine(self) -> str:
        """Returns the host's boot id. Jobs in containers of one machine share it; machines made
        from one image do not, as it is new at every start."""
        boot = _first_line(_BOOT) or platform.node()
        return hashlib.sha256(boot.encode()).hexdigest()[:16]

    def environment(self) -> Mapping[str, str]:
        """Returns facts about the machine for the report. They never decide anything."""
        load = os.getloadavg()
        facts = {
            "cpu": _cpu_name(),
            "cores": str(os.cpu_count() or 1),
            "cores usable": str(usable_cores()),
            "load average": f"{load[0]:.2f} {load[1]:.2f} {load[2]:.2f}",
            "kernel": platform.release(),
            "python": platform.python_version(),
            **{f"{name} version": version for name, version in self._versions.items()},
        }
        governor = _first_line(_GOVERNOR)
        if governor:
            facts["cpu governor"] = governor
        steal = _steal_ticks()
        if steal is not None:
            facts["steal ticks since boot"] = str(steal)
        return facts | (_gpu_environment() if self._kind == "cuda" else {})


def _gpu_environment() -> dict[str, str]:
    """Returns facts about the first visible GPU, without those it does not report."""
    gpus = visible_gpus()
    if not gpus:
        return {}
    gpu, state = gpus[0], state_of(gpus[0].uuid)
    facts = _gpu_facts(gpu) if state is None else _gpu_facts(gpu) | _state_facts(state)
    return {name: value for name, value in facts.items() if value is not None}


def _gpu_facts(gpu: Gpu) -> dict[str, str | None]:
    return {
        "gpu": gpu.name,
        "gpu uuid": gpu.uuid,
        "gpu driver": gpu.driver,
        "gpu power cap": _add_unit(gpu.power_cap_watts, "W"),
        "gpu ECC": None if gpu.ecc is None else "on" if gpu.ecc else "off",
        "gpu is a part (MIG)": "yes" if gpu.is_part else None,
    }


def _state_facts(state: GpuState) -> dict[str, str | None]:
    return {
        "gpu clock": _add_unit(state.sm_mhz, "MHz"),
        "gpu memory clock": _add_unit(state.memory_mhz, "MHz"),
        "gpu temperature": _add_unit(state.celsius, "C"),
        "gpu slowed down by": ", ".join(state.throttled) or "nothing",
        "gpu processes": str(len(state.processes)),
    }


def _add_unit(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{value:g} {unit}"


def _cpu_name() -> str:
    for line in _read_text(_CPUINFO).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()


def _steal_ticks() -> int | None:
    fields = _first_line(_STAT).split()
    return int(fields[_STEAL_FIELD]) if len(fields) > _STEAL_FIELD else None


def _first_line(path: Path) -> str:
    return _read_text(path).partition("\n")[0].strip()


def _read_text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


_: type[Device] = ThisMachine
