"""The number of cores that this process may use: the affinity mask, cut by the container's
quota."""

from __future__ import annotations

import os
from pathlib import Path


def usable_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    allowed = len(os.sched_getaffinity(0))
    quota = _quota(cgroup)
    return allowed if quota is None else max(1, min(allowed, int(quota)))


def physical_cores(devices: Path = Path("/sys/devices/system/cpu")) -> tuple[tuple[int, ...], ...]:
    """The cores of the affinity mask, each with the processors that are its threads: two threads of
    one core slow each other down. Where the machine does not say, each processor is a core."""
    found: dict[str, list[int]] = {}
    for thread in sorted(os.sched_getaffinity(0)):
        try:
            siblings = (devices / f"cpu{thread}/topology/thread_siblings_list").read_text()
        except OSError:
            siblings = str(thread)
        found.setdefault(siblings.strip(), []).append(thread)
    return tuple(tuple(threads) for threads in found.values())


def default_threads() -> int:
    """Every core but one: what else runs on the machine needs it, and would disturb the others."""
    return max(1, usable_cores() - 1)


def _quota(cgroup: Path) -> float | None:
    try:
        limit, period = (cgroup / "cpu.max").read_text().split()
    except (OSError, ValueError):
        return None
    return None if limit == "max" else int(limit) / int(period)
