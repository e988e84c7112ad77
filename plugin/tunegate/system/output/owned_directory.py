"""Checks that a directory is ours: no link of a checkout leads to it, and our marker says that we
made it.

Standard library only: the Action's clean-up step uses it too.
"""

import fcntl
import json
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tunegate.errors import OutputError, OutputInUseError
from tunegate.regular_files import read_regular, replace, working_tree

MARKER = ".owned-by-tunegate"
LOCK = ".lock"
WORK = "work"
_VERSION = 1


def refuse_links(directory: Path) -> None:
    """Raises OutputError for a directory that is a link, or that a checkout's link leads to. Parts
    of a relative path count as a checkout's, and so does everything below a directory with a
    `.git`; links on the way to a checkout are the user's own."""
    for link in _links(directory):
        message = (
            f"{directory}: {link} is a link, and links are not followed where files are replaced. "
            f"Name the directory itself, or remove the link."
        )
        raise OutputError(message)


def is_marked(directory: Path) -> bool:
    """Returns whether a run of ours wrote here, perhaps on another machine."""
    return _marker(directory) is not None


def is_marked_here(directory: Path) -> bool:
    """Returns whether the marker was made in this very directory: a committed or copied one names
    another."""
    marker = _marker(directory)
    return marker is not None and marker == _identity(directory)


def mark(directory: Path) -> None:
    """Writes the marker. Raises OSError."""
    replace(directory / MARKER, json.dumps(_identity(directory)).encode() + b"\n")


def _links(directory: Path) -> Iterator[Path]:
    """Yields the forbidden links on the way to the directory."""
    parts = directory.parts[1:] if directory.is_absolute() else directory.parts
    place = Path(directory.anchor) if directory.is_absolute() else Path.cwd()
    for number, part in enumerate(parts, 1):
        place = place.parent if part == ".." else place / part
        if not place.is_symlink():
            continue
        is_last = number == len(parts)
        if is_last or not directory.is_absolute() or working_tree(place.parent) is not None:
            yield place
        place = Path(os.path.realpath(place))


def _marker(directory: Path) -> dict[str, Any] | None:
    try:
        marker = json.loads(read_regular(directory / MARKER))
    except (OSError, ValueError):
        return None
    return marker if isinstance(marker, dict) and marker.get("tunegate") == _VERSION else None


def _identity(directory: Path) -> dict[str, Any]:
    at = os.lstat(directory)
    return {"tunegate": _VERSION, "device": at.st_dev, "inode": at.st_ino}


# A kernel lock on a file: one run at a time in an output directory. The kernel frees it when the
# holding process ends in any way. Standard library only: the
# Action's clean-up step uses it too.

_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@contextmanager
def held_directory(directory: Path, command: str) -> Iterator[None]:
    """Holds the directory. Raises OutputInUseError, which names the run that has it, and
    OutputError if a file cannot be locked there."""
    try:
        file = os.open(directory / LOCK, _OPEN, 0o666)
    except OSError as error:
        raise _unusable(directory, error.strerror) from error
    try:
        _take(file, directory)
        _sign(file, command)
        yield
    finally:
        os.close(file)


def writer_at_work(directory: Path) -> str:
    """Returns the run that has the directory, in words, '' if none. Takes no lock, which could make
    a run that begins fail."""
    try:
        inode = os.lstat(directory / LOCK).st_ino
        locks = Path("/proc/locks").read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
    has_lock = any(f":{inode} " in line and "FLOCK" in line for line in locks.splitlines())
    return _describe_holder(_holder(directory)) if has_lock else ""


def _take(file: int, directory: Path) -> None:
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise _unusable(directory, "it is not a plain file")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        message = (
            f"{directory}: {_describe_holder(_holder(directory))} writes there. "
            f"Wait for it to end, or choose another directory with --out."
        )
        raise OutputInUseError(message) from error
    except OSError as error:
        raise _unusable(directory, error.strerror) from error


def _unusable(directory: Path, why: str | None) -> OutputError:
    path = directory / LOCK
    return OutputError(f"{path}: cannot be locked ({why}). Choose another directory with --out.")


def _sign(file: int, command: str) -> None:
    holder = {"pid": os.getpid(), "command": command, "started": int(time.time())}
    with suppress(OSError):  # a full disk: the lock holds without a name
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps(holder).encode() + b"\n", 0)


def _holder(directory: Path) -> dict[str, Any]:
    try:
        holder = json.loads(read_regular(directory / LOCK))
    except (OSError, ValueError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _describe_holder(holder: dict[str, Any]) -> str:
    pid, since = holder.get("pid"), holder.get("started")
    if not isinstance(pid, int) or not isinstance(since, int):
        return "another run"
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(since))
    return f"process {pid} (tunegate {str(holder.get('command'))[:40]}, since {when} UTC)"


def remove_abandoned_work(out: Path) -> None:
    """Removes the working files of a killed run: the Action's step that always runs. Only from a
    directory that a run made here and no run still uses. Raises OutputError, OutputInUseError,
    OSError."""
    refuse_links(out)
    work = out / WORK
    if not os.path.lexists(work) or not is_marked_here(out):
        return
    with held_directory(out, "clean-up"):
        shutil.rmtree(work)
