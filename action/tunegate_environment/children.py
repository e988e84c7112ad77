"""Starts the bootstrap's programs. Each is isolated from the workspace, shows every few seconds
that it is alive, and dies with the bootstrap."""

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

_came: list[int] = []
"""The signal that cancelled the job: what it raised may be dropped on its way."""


def run_child(program: Iterable[object], environment: Mapping[str, str], doing: str = "") -> str:
    """Runs a program and returns its stdout. It runs in an empty directory, as what it starts may
    look around. Raises CalledProcessError with its stderr."""
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
        answer, complaint = _wait_for(child, doing)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command, answer, complaint)
    return answer


def cancel_on_signals() -> None:
    """Makes SIGINT and SIGTERM, which cancel a job, end what is running, as Ctrl-C does. A program
    that replaces this one begins with the system's handling. Where SIGCHLD came ignored, every
    child would look like a success."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _cancel)


def raise_if_cancelled() -> None:
    if _came:
        raise KeyboardInterrupt


def absolute_only(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment without search paths that depend on the working directory, which an
    empty entry means. The environment is trusted, but not for what it says by accident."""
    variables = dict(environment)
    for name, separators in LISTS.items():
        entries = re.split(f"[{separators}]", variables.pop(name, ""))
        if absolute := ":".join(entry for entry in entries if Path(entry).is_absolute()):
            variables[name] = absolute
    return variables


def _cancel(came: int, _frame: FrameType | None) -> None:
    _came.append(came)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    _LIBC.prctl(_ENDED_WITH_PARENT, signal.SIGKILL)


def _wait_for(child: subprocess.Popen[str], doing: str) -> tuple[str, str]:
    began = time.monotonic()
    while True:
        raise_if_cancelled()
        try:
            return child.communicate(timeout=SECONDS_BETWEEN_LINES)
        except subprocess.TimeoutExpired:
            if doing:
                print(f"tunegate: {doing} ({time.monotonic() - began:.0f} s)", flush=True)
