"""ports.Device: what this machine is, and what disturbs it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

import psutil

from tunegate.edges.cores import usable_cores
from tunegate.edges.nvidia import nvidia_fingerprint
from tunegate.ports import Device
from tunegate_cache.records import DeviceFingerprint

_CPUINFO = Path("/proc/cpuinfo")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_STAT = Path("/proc/stat")
_STEAL_FIELD = 8


class ThisMachine:
    """`kind` is the kind of the targets that run here: their device is the one to name."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def fingerprint(self) -> DeviceFingerprint:
        if self._kind == "cuda":
            gpu = nvidia_fingerprint()
            if gpu is not None:
                return gpu
        return DeviceFingerprint(
            name=_cpu_name(),
            kind="cpu",
            units=usable_cores(),
            memory_bytes=psutil.virtual_memory().total,
        )

    def environment(self) -> Mapping[str, str]:
        """For the report: never decides."""
        load = os.getloadavg()
        found = {
            "cpu": _cpu_name(),
            "cores usable": str(usable_cores()),
            "load average": f"{load[0]:.2f} {load[1]:.2f} {load[2]:.2f}",
            "kernel": platform.release(),
            "python": platform.python_version(),
        }
        governor = _first_line(_GOVERNOR)
        if governor:
            found["cpu governor"] = governor
        steal = _steal_ticks()
        if steal is not None:
            found["steal ticks since boot"] = str(steal)
        return found


def _cpu_name() -> str:
    for line in _read(_CPUINFO).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()


def _steal_ticks() -> int | None:
    fields = _first_line(_STAT).split()
    return int(fields[_STEAL_FIELD]) if len(fields) > _STEAL_FIELD else None


def _first_line(path: Path) -> str:
    return _read(path).partition("\n")[0].strip()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


_: type[Device] = ThisMachine
