"""The memory available to us: of the machine, and of the control groups that we run in."""

from __future__ import annotations

from pathlib import Path

import psutil

_GROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def available_bytes(groups: Path = _GROUPS, own: Path = _OWN) -> int:
    """Returns the bytes that can be taken without swapping, and without being killed by the limit
    of a container."""
    room = [_room(directory) for directory in _own_groups(groups, own)]
    left = [each for each in room if each is not None]
    return int(min(psutil.virtual_memory().available, *left, 2**63))


def _own_groups(groups: Path, own: Path) -> list[Path]:
    """Ours and those above it: every limit counts. Version 1 has a
    directory for each controller."""
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return []
    found = []
    for number, controllers, name in (line for line in lines if len(line) == 3):  # noqa: PLR2004
        if number != "0" and "memory" not in controllers.split(","):
            continue
        root = groups if number == "0" else groups / "memory"
        below = root / name.lstrip("/")
        found += [each for each in (below, *below.parents) if each.is_relative_to(root)]
        found.append(root)
    return found


def _room(group: Path) -> int | None:
    """The memory that a group has left, or None for a group without a limit. What it
    holds of files can be had back."""
    limit = _number(group / "memory.max") or _number(group / "memory.limit_in_bytes")
    used = _number(group / "memory.current") or _number(group / "memory.usage_in_bytes")
    if limit is None or used is None:
        return None
    return max(0, limit - used + _of_files(group / "memory.stat"))


def _of_files(statistics: Path) -> int:
    try:
        lines = dict(line.split() for line in statistics.read_text().splitlines())
        return int(lines.get("inactive_file") or lines.get("total_inactive_file") or 0)
    except (OSError, ValueError):
        return 0


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # "max"
        return None
