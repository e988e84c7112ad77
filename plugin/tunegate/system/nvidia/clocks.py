"""Clocks that are locked while something measures, and free again afterwards, whatever happens.

A process of its own locks them and waits for its parent: the end of the parent, however it comes,
closes its standard input, and it unlocks. What even a machine's crash leaves locked, a note on disk
tells to the next run.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil

from tunegate.artifacts.measurements import Gpu
from tunegate.system.nvidia.nvml import nvml
from tunegate.system.processes import interpreter

_GUARD = "tunegate.system.nvidia.clock_guard"
_READY = b"locked\n"
_DRIVER_SECONDS = 30.0


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """The process that has locked the clocks of a device; `started` tells it from a later one with
    its number."""

    uuid: str
    mhz: int
    pid: int
    started: float


@contextmanager
def locked_clocks(gpu: Gpu, mhz: int, directory: Path) -> Iterator[bool]:
    """Locks the clocks inside. Yields False where this machine does not let us:
    then the clocks float as before."""
    # Its process group is its own: a signal to ours, or its killing,
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
    """Returns whether the guard has locked the clocks: a hanging driver has not."""
    if guard.stdout is None or not select.select([guard.stdout], [], [], _DRIVER_SECONDS)[0]:
        return False
    return guard.stdout.readline() == _READY


def _wait(guard: interpreter.BinaryProcess) -> None:
    """Waits for the guard, and kills one that does not end: its note tells the next run that clocks
    may be locked."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        guard.wait(_DRIVER_SECONDS)
        return
    guard.kill()


def repair_clocks(directory: Path) -> tuple[str, ...]:
    """Unlock what a guard that is gone has left locked. The devices that were unlocked."""
    repaired = []
    for path in sorted(directory.glob("tunegate-clocks-*.json")):
        note = _read(path)
        if note is None or _lives(note):
            continue
        if unlock(note.uuid):
            path.unlink(missing_ok=True)
            repaired.append(note.uuid)
    return tuple(repaired)


def lock(uuid: str, mhz: int, directory: Path) -> Path | None:
    """Both ends of the range at `mhz`. The note that says so; None where it is not
    permitted. The note comes first: a crash between the two may leave a note too
    many, never a lock without one."""
    note = Note(uuid=uuid, mhz=mhz, pid=os.getpid(), started=psutil.Process().create_time())
    path = directory / f"tunegate-clocks-{uuid}.json"
    try:
        path.write_bytes(msgspec.json.encode(note))
    except OSError:
        return None
    if not _set(
        uuid, lambda library, handle: library.nvmlDeviceSetGpuLockedClocks(handle, mhz, mhz)
    ):
        path.unlink(missing_ok=True)
        return None
    return path


def unlock(uuid: str) -> bool:
    return _set(uuid, lambda library, handle: library.nvmlDeviceResetGpuLockedClocks(handle))


def _set(uuid: str, setting: Callable[[Any, Any], object]) -> bool:
    """Makes the setting. Returns False where the device is not there, cannot do it, or we may
    not."""
    with nvml() as library:
        if library is None:
            return False
        try:
            setting(library, library.nvmlDeviceGetHandleByUUID(uuid.encode()))
        except library.NVMLError:
            return False
    return True


def _read(path: Path) -> Note | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Note)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _lives(note: Note) -> bool:
    try:
        started = float(psutil.Process(note.pid).create_time())
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True
    return abs(started - note.started) < 1
