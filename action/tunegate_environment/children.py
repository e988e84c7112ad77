"""Programs that the bootstrap starts. Each is isolated from the workspace, says every few seconds
that it still works, and is gone when the bootstrap is."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType

SECONDS_BETWEEN_LINES = 8.0
LISTS = {"PATH": ":", "LD_LIBRARY_PATH": ":;", "LD_PRELOAD": ": ", "LD_AUDIT": ":"}
_ENDED_WITH_PARENT = 1
"""`PR_SET_PDEATHSIG` of the kernel."""
_LIBC = ctypes.CDLL(None)


def run_child(program: Iterable[object], environment: Mapping[str, str], doing: str = "") -> str:
    """Returns its stdout. It runs in a directory of nobody's: what it starts may look around where
    it is. Raises CalledProcessError with its stderr."""
    command = [str(word) for word in program]
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd="/",
        env=absolute_only(environment),
        start_new_session=True,
        preexec_fn=_end_with_parent,  # noqa: PLW1509 -- the bootstrap has one thread
    )
    try:
        said, complaint = _ended(child, doing)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command, said, complaint)
    return said


def cancel_on_signals() -> None:
    """A job is cancelled by SIGINT and then SIGTERM. Both end what is running, as Ctrl-C does. A
    program that replaces this one begins with the system's handling."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _cancelled)


def absolute_only(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with no place to look for programs or libraries that depends on the working
    directory: an empty entry means it. The environment is trusted; what it says by accident is
    not."""
    kept = dict(environment)
    for name, separators in LISTS.items():
        entries = re.split(f"[{separators}]", kept.pop(name, ""))
        if absolute := ":".join(entry for entry in entries if Path(entry).is_absolute()):
            kept[name] = absolute
    return kept


def _cancelled(_number: int, _frame: FrameType | None) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    _LIBC.prctl(_ENDED_WITH_PARENT, signal.SIGKILL)


def _ended(child: subprocess.Popen[str], doing: str) -> tuple[str, str]:
    began = time.monotonic()
    while True:
        try:
            return child.communicate(timeout=SECONDS_BETWEEN_LINES)
        except subprocess.TimeoutExpired:
            if doing:
                print(f"tunegate: {doing} ({time.monotonic() - began:.0f} s)", flush=True)
