"""The number of cores that this process may use: the affinity mask, reduced by the quotas of its
control groups."""

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from tunegate.system.processes.memory_limit import GROUPS, OWN_GROUPS, own_groups


def usable_cores(groups: Path = GROUPS, own: Path = OWN_GROUPS) -> int:
    quotas = filter(None, map(_quota, own_groups("cpu", groups, own)))
    return max(1, min([len(os.sched_getaffinity(0)), *map(int, quotas)]))


def physical_cores(devices: Path = Path("/sys/devices/system/cpu")) -> tuple[tuple[int, ...], ...]:
    """Returns the cores of the affinity mask, each with its hardware threads: two threads of one
    core slow each other down. If the machine does not say, each processor is a core."""
    threads_of_cores: dict[str, list[int]] = {}
    for thread in sorted(os.sched_getaffinity(0)):
        try:
            siblings = (devices / f"cpu{thread}/topology/thread_siblings_list").read_text()
        except OSError:
            siblings = str(thread)
        threads_of_cores.setdefault(siblings.strip(), []).append(thread)
    return tuple(tuple(threads) for threads in threads_of_cores.values())


def default_threads() -> int:
    """Returns every core but one, which other work on the machine needs: it would disturb the
    rest."""
    return max(1, usable_cores() - 1)


def _quota(group: Path) -> float | None:
    """Returns the cores that a control group may use, None without a limit."""
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):  # of version 2, and 1
        with suppress(OSError, ValueError):  # "max"
            limit, period = " ".join((group / name).read_text() for name in names).split()
            return int(limit) / int(period) if int(limit) > 0 else None
    return None


# The processor's features for precisions below float32, by Linux's names.

CPU_INFO: Final = Path("/proc/cpuinfo")
_KNOWN: Final = (
    *("avx", "avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    *("amx_tile", "amx_int8", "amx_bf16", "amx_fp16"),
)
"""Processor features by precision, oldest first."""


def lacks_any(features: Collection[str], cpu_info: Path = CPU_INFO) -> str:
    """Returns that the processor has none of these, and what it has; '' if it has one."""
    flags = _flags(cpu_info)
    if not features or flags & {*features}:
        return ""
    return f"the processor has none of {', '.join(sorted(features))} ({_has(flags)})"


def lacks_some(features: Collection[str], cpu_info: Path = CPU_INFO) -> str:
    """Returns which of these the processor lacks, and what it has; '' if it has all."""
    flags = _flags(cpu_info)
    missing = sorted({*features} - flags)
    return f"the processor lacks {', '.join(missing)} ({_has(flags)})" if missing else ""


def _has(flags: Collection[str]) -> str:
    return f"it has {' '.join(each for each in _KNOWN if each in flags) or 'none that are known'}"


def _flags(cpu_info: Path) -> frozenset[str]:
    lines = cpu_info.read_text(errors="replace").splitlines() if cpu_info.exists() else []
    flags = (line.partition(":")[2].split() for line in lines if line.startswith("flags"))
    return frozenset(next(flags, []))
