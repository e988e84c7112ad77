"""The memory that a child may take: a model of a few bytes, or a schedule, can ask for any
amount."""

import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import psutil

from tunegate.system.processes.run_child import MEMORY_VARIABLE

_SHARE = 0.8
"""The share of the available memory for children: the rest is for this process, and for what else
runs here."""
_MIN_BYTES = 2**30
"""The smallest limit: a compiler takes half of it before it has read anything."""
_USUAL_BYTES = 2 * 2**30
_TIMES_ITS_FILES = 8
"""A model being compiled takes several times its files."""


class MemoryLimit(msgspec.Struct, frozen=True):
    """The memory limit of one child. If `is_kernels`, the kernel enforces it. A GPU driver maps far
    more memory than it uses, so with one the parent watches the memory in use."""

    limit_bytes: int
    is_kernels: bool = True

    @property
    def variables(self) -> dict[str, str]:
        return {MEMORY_VARIABLE: str(self.limit_bytes)} if self.is_kernels else {}


class Shares(NamedTuple):
    """The number of children that may run at once, and the memory of each."""

    at_once: int
    memory: MemoryLimit


def memory_limit(kind: Literal["llvm", "cuda"] = "llvm", *, children: int = 1) -> MemoryLimit:
    """Returns the memory limit of each of `children` that run at once."""
    share = int(_SHARE * available_bytes()) // children
    return MemoryLimit(max(share, _MIN_BYTES), is_kernels=kind != "cuda")


def memory_shares(
    models: Sequence[Path], cores: int, kind: Literal["llvm", "cuda"] = "llvm"
) -> Shares:
    """Returns the shares for children that build these models: fewer run at once if the models are
    large."""
    share_bytes = max([_USUAL_BYTES, *(_TIMES_ITS_FILES * _size_bytes(model) for model in models)])
    fitting = int(_SHARE * available_bytes()) // share_bytes
    at_once = max(1, min(cores, len(models), fitting))
    return Shares(at_once, memory_limit(kind, children=at_once))


def _size_bytes(model: Path) -> int:
    """Returns the size of a model and of all files beside it, since its data files are there."""
    return sum(file.stat().st_size for file in model.parent.iterdir() if file.is_file())


@contextmanager
def lowered_limit(most_bytes: int) -> Iterator[None]:
    """Lowers this process's own limit to `most_bytes` for a while, if it is not lower anyway."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [each for each in (soft, most_bytes) if each != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


# Memory that was refused, in whatever words a library has for it.

_WORDS = (
    *("Failed to allocate memory", "bad_alloc", "bad allocation", "Unable to allocate"),
    *("Cannot allocate memory", "MemoryError", "out of memory", "std::length_error"),
)


def memory_problem(error: BaseException) -> str:
    """Returns a sentence on the lack of memory, '' for an error of another kind."""
    text = f"{type(error).__name__}: {error}"
    if not any(words in text for words in _WORDS):
        return ""
    limit_bytes, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if limit_bytes == resource.RLIM_INFINITY:
        return "it needs more memory than there is"
    return f"it needs more than the {limit_bytes / 1e9:.1f} GB of memory that it may take here"


def lacked_memory(error: BaseException) -> bool:
    """Returns whether an error, or its cause, is a lack of memory."""
    cause = error.__cause__
    return bool(memory_problem(error)) or (cause is not None and lacked_memory(cause))


_OTHER_LIMITS = (
    *("No space left on device", "Disk quota exceeded", "Read-only file system"),
    *("Too many open files", "Resource temporarily unavailable"),
)


def is_of_machine(error: BaseException) -> bool:
    """Returns whether the machine lacked something, such as memory or room on a disk, in whatever
    words: then what failed may be right."""
    within = error.__cause__ or error.__context__
    return (
        isinstance(error, OSError)
        or lacked_memory(error)
        or any(words in str(error) for words in _OTHER_LIMITS)
        or (within is not None and is_of_machine(within))
    )


# The memory available to us: of the machine, and of the control groups that we run in.

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


def available_bytes(groups: Path = GROUPS, own: Path = OWN_GROUPS) -> int:
    """Returns the bytes that can be taken without swapping, and without being killed by a
    container's limit."""
    room = [_room(directory) for directory in own_groups("memory", groups, own)]
    limits = [each for each in room if each is not None]
    return int(min(psutil.virtual_memory().available, *limits, 2**63))


def own_groups(controller: str, groups: Path, own: Path) -> list[Path]:
    """Returns our control groups and those above: every limit counts. Version 1 has one directory
    per controller."""
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return []
    directories = []
    for number, controllers, name in (line for line in lines if len(line) == 3):  # noqa: PLR2004
        if number != "0" and controller not in controllers.split(","):
            continue
        root = groups if number == "0" else groups / controller
        below = root / name.lstrip("/")
        directories += [each for each in (below, *below.parents) if each.is_relative_to(root)]
        directories.append(root)
    return directories


def _room(group: Path) -> int | None:
    """Returns the memory that a group has left, None without a limit. Memory that caches files can
    be reclaimed."""
    limit = _number(group / "memory.max") or _number(group / "memory.limit_in_bytes")
    used_bytes = _number(group / "memory.current") or _number(group / "memory.usage_in_bytes")
    if limit is None or used_bytes is None:
        return None
    return max(0, limit - used_bytes + _cached_file_bytes(group / "memory.stat"))


def _cached_file_bytes(statistics: Path) -> int:
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
