"""Locks clocks while something measures, and frees them afterwards, whatever happens.

A separate process locks them and waits for its parent: when the parent ends in any way, its
standard input closes and it unlocks. If a crash of the machine leaves them locked, a note on disk
tells the next run.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil

from tunegate.artifacts.artifact_io import NOT_JSON
from tunegate.artifacts.measurements import Gpu
from tunegate.system.nvidia.nvml import nvml
from tunegate.system.processes import interpreter

_GUARD = "tunegate.system.nvidia.clocks"
_READY = b"locked\n"
_DRIVER_SECONDS = 30.0


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """The process that locked the clocks of a device; `started` tells it from a later one with the
    same number."""

    uuid: str
    mhz: int
    pid: int
    started: float


@contextmanager
def locked_clocks(gpu: Gpu, mhz: int, directory: Path) -> Iterator[bool]:
    """Locks the clocks inside. Yields False if this machine does not allow it: then they float as
    before."""
    # It has a process group of its own: a signal to ours, or its killing,
    # must not take the guard with it.
    with interpreter.begin(
        *(_GUARD, gpu.uuid, str(mhz), str(directory.absolute())),
        variables={},
        errors=subprocess.DEVNULL,
    ) as guard:
        try:
            yield _is_ready(guard)
        finally:
            if guard.stdin is not None:
                with contextlib.suppress(OSError):
                    guard.stdin.close()
            _wait(guard)


def _is_ready(guard: interpreter.BinaryProcess) -> bool:
    """Returns whether the guard has locked the clocks; with a hanging driver it has not."""
    if guard.stdout is None or not select.select([guard.stdout], [], [], _DRIVER_SECONDS)[0]:
        return False
    return guard.stdout.readline() == _READY


def _wait(guard: interpreter.BinaryProcess) -> None:
    """Waits for the guard, and kills it if it does not end: its note tells the next run that clocks
    may be locked."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        guard.wait(_DRIVER_SECONDS)
        return
    guard.kill()


def repair_clocks(directory: Path) -> tuple[str, ...]:
    """Unlocks what a dead guard left locked, and returns those devices."""
    uuids = []
    for path in sorted(directory.glob("tunegate-clocks-*.json")):
        note = _read_note(path)
        if note is None or _lives(note):
            continue
        if unlock(note.uuid):
            path.unlink(missing_ok=True)
            uuids.append(note.uuid)
    return tuple(uuids)


def lock(uuid: str, mhz: int, directory: Path) -> Path | None:
    """Locks both ends of the range at `mhz`. Returns the note on disk, None if that is not
    permitted. The note is written first: a crash in between may leave a needless note, never a lock
    without one."""
    note = Note(uuid=uuid, mhz=mhz, pid=os.getpid(), started=psutil.Process().create_time())
    path = directory / f"tunegate-clocks-{uuid}.json"
    try:
        path.write_bytes(msgspec.json.encode(note))
    except OSError:
        return None
    if not _apply(
        uuid, lambda library, handle: library.nvmlDeviceSetGpuLockedClocks(handle, mhz, mhz)
    ):
        path.unlink(missing_ok=True)
        return None
    return path


def unlock(uuid: str) -> bool:
    return _apply(uuid, lambda library, handle: library.nvmlDeviceResetGpuLockedClocks(handle))


def _apply(uuid: str, setting: Callable[[Any, Any], object]) -> bool:
    """Applies the setting. Returns False if the device is missing, cannot do it, or we may not."""
    with nvml() as library:
        if library is None:
            return False
        try:
            setting(library, library.nvmlDeviceGetHandleByUUID(uuid.encode()))
        except library.NVMLError:
            return False
    return True


def _read_note(path: Path) -> Note | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Note)
    except (OSError, *NOT_JSON):
        return None


def _lives(note: Note) -> bool:
    try:
        start = float(psutil.Process(note.pid).create_time())
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True
    return abs(start - note.started) < 1


# `python -m tunegate.system.nvidia.clocks UUID MHZ DIRECTORY`: locks, and unlocks at the end.


def main(uuid: str, mhz: int, directory: Path) -> int:
    """Holds the lock until standard input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    note = lock(uuid, mhz, directory)
    sys.stdout.write("locked\n" if note else "not permitted\n")
    sys.stdout.flush()
    sys.stdin.read()
    if note is not None and unlock(uuid):
        note.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
