"""The only place that starts a Python. Nothing of the checkout is imported or loaded there.

Such a process imports from where this one does, works in no user directory, and inherits no
variable that could hold a secret or name code to load. Only a Python environment that the user
named can add another place to import from.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from tunegate.isolation import absolute_only
from tunegate.system.processes.run_child import MARK_VARIABLE, limit_realtime, marking_limit

BinaryProcess = subprocess.Popen[bytes]

_START = Path(__file__).with_name("isolated_start.py")
_FLAGS = ("-P", "-s")
"""Neither the working directory nor the user's site directory is searched. With the variables that
are passed on, this is `-I`, but for PYTHONHASHSEED, which that would ignore."""
_NOWHERE = "/"
"""The working directory: libraries and compilers read settings from it."""
_PASSED_ON = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_HOME"),
    *("PYTHONUTF8", "PYTHONDONTWRITEBYTECODE"),
)
_PASSED_ON_PREFIXES = ("NVIDIA_", "CUDA_VISIBLE_")
_PLACES = ("HOME", "TMPDIR", "CUDA_HOME")
"""Path variables that must be absolute: the working directory differs there."""


def begin(
    module: str,
    *arguments: str,
    variables: Mapping[str, str],
    errors: int | IO[bytes],
    python: Path | None = None,
) -> BinaryProcess:
    """Starts `python -m module` in a process group of its own, with pipes to and from it. `python`
    is that of an environment whose packages come before ours."""
    return subprocess.Popen(
        _command_line(module, arguments, python),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=child_environment(variables),
        cwd=_NOWHERE,
        start_new_session=True,
    )


def ask(
    module: str, *, variables: Mapping[str, str], limit_seconds: float
) -> subprocess.CompletedProcess[bytes] | None:
    """Runs `python -m module`, and returns how it ended, None if it did not in time."""
    return _run(_command_line(module, (), None), variables, limit_seconds)


def ask_environment(
    python: Path, script: Path, arguments: Sequence[str], *, limit_seconds: float
) -> subprocess.CompletedProcess[bytes] | None:
    """Runs a script of ours under the Python of an environment, and returns how it ended, None if
    it did not in time."""
    return _run([str(python), *_FLAGS, str(script), *arguments], {}, limit_seconds)


def _run(
    line: list[str], variables: Mapping[str, str], limit_seconds: float
) -> subprocess.CompletedProcess[bytes] | None:
    try:
        return subprocess.run(
            line,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=child_environment(variables),
            cwd=_NOWHERE,
            timeout=limit_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None


def child_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns these variables, and those of ours that can hold no secret."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED_ON or name.startswith(_PASSED_ON_PREFIXES)
    }
    for name in _PLACES:
        if not Path(environment.get(name, "")).is_absolute():
            environment.pop(name, None)
    return absolute_only({**environment, **variables})


# What a child starts may leave its process group, and its parent, and may clear its variables. It
# keeps the limits: whoever lowers a hard limit cannot raise it again.

_ROUNDS = 20
"""The most looks for what is left: it may start more meanwhile."""


def mark() -> dict[str, str]:
    """Returns the variable that marks one child, and all that it starts."""
    return {MARK_VARIABLE: f"{os.getpid()}-{os.urandom(8).hex()}"}


@contextlib.contextmanager
def marking_programs() -> Iterator[dict[str, str]]:
    """Gives a mark for programs that are not ours, and kills what carries it if the block fails. An
    interrupt may come while one starts: then nobody else has its number, and waits for it."""
    variables = mark()
    try:
        yield variables
    except BaseException:
        for pid in end_marked(variables):
            with contextlib.suppress(ChildProcessError):  # what it started is not our child
                os.waitpid(pid, 0)
        raise


def mark_process(pid: int, variables: Mapping[str, str]) -> None:
    """Marks a program that was just started, and what it starts from now on. Our children mark
    themselves before they load anything."""
    limit_realtime(pid, variables[MARK_VARIABLE])


def end_marked(variables: Mapping[str, str], proc: Path = Path("/proc")) -> frozenset[int]:
    """Kills what carries this mark: daemons of a child in sessions of their own. Returns the
    numbers of what it killed."""
    mark = variables[MARK_VARIABLE]
    entry, limit = f"{MARK_VARIABLE}={mark}".encode(), str(marking_limit(mark)).encode()
    killed = set[int]()
    for _ in range(_ROUNDS):
        pids = list(_with_mark(entry, limit, proc))
        if not pids:
            break
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
    return frozenset(killed)


_GUARD = ("/bin/sh", "-c", 'read -r _ || kill -9 "-$1"', "sh")
"""Waits for the end of a pipe that only its parent holds open."""


@contextlib.contextmanager
def group_guard(leader: int) -> Iterator[None]:
    """Ends the process group of a program that is not ours with this process, also if a SIGKILL
    ends this one: the death signal of a program does not reach what it starts."""
    with subprocess.Popen(
        [*_GUARD, str(leader)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=child_environment({}),
        cwd=_NOWHERE,
        start_new_session=True,
    ) as guard:
        try:
            yield
        finally:
            guard.kill()


def _with_mark(entry: bytes, limit: bytes, proc: Path) -> Iterator[int]:
    for process in proc.glob("[1-9]*"):
        with contextlib.suppress(OSError):
            if entry in (process / "environ").read_bytes().split(b"\0") or (
                limit in (process / "limits").read_bytes()
            ):
                yield int(process.name)


def _command_line(module: str, arguments: tuple[str, ...], python: Path | None) -> list[str]:
    places = json.dumps([entry for entry in sys.path if Path(entry).is_absolute()])
    start = [str(_START)] if python is None else [str(_START), "--environment"]
    return [str(python or sys.executable), *_FLAGS, *start, places, module, *arguments]
