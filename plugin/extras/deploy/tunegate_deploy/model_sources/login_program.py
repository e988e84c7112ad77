"""Runs docker's helper program as a child process, to get one login.

It is the user's own and gets the user's variables, which what it calls needs. It runs in an empty
directory, and is never looked up in a place that depends on the working directory.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from typing import IO

import msgspec

from tunegate.isolation import absolute_only

_LIMIT_SECONDS = 30.0
_MAX_BYTES = 2**20
_NOWHERE = "/"


class HelperAnswer(msgspec.Struct, frozen=True):
    """`trouble` is why there is no answer, '' if there is one; `printed` is standard output."""

    printed: bytes = b""
    exit_code: int = 0
    trouble: str = ""


def asked_helper(
    program: str,
    server: str,
    variables: Mapping[str, str],
    *,
    limit_seconds: float = _LIMIT_SECONDS,
) -> HelperAnswer:
    """Returns the answer of `program get` about a server, whose name it reads from standard input.
    It and its children are ended after the limit, and with this process."""
    environment = absolute_only(dict(variables))
    found = shutil.which(program, path=environment.get("PATH", "/nowhere"))
    if found is None:
        return HelperAnswer(trouble="was not found on the PATH")
    with tempfile.TemporaryFile() as asked:
        asked.write(server.encode())
        asked.seek(0)
        try:
            process = _start(found, asked, environment)
        except OSError as error:
            return HelperAnswer(trouble=f"cannot be run ({error.strerror})")
        with process, _ended_with_us(process):
            return _answer(process, limit_seconds)


def _start(
    program: str, request: IO[bytes], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [program, "get"],
        stdin=request,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=_NOWHERE,
        start_new_session=True,
    )


def _answer(process: subprocess.Popen[bytes], limit_seconds: float) -> HelperAnswer:
    is_late = threading.Event()

    def stop() -> None:
        is_late.set()
        _end(process)

    alarm = threading.Timer(limit_seconds, stop)
    alarm.start()
    try:
        printed = process.stdout.read(_MAX_BYTES + 1) if process.stdout else b""
        if len(printed) > _MAX_BYTES:
            return HelperAnswer(trouble="printed more than any login")
        code = process.wait()
    finally:
        alarm.cancel()
    if is_late.is_set():
        return HelperAnswer(trouble=f"did not end in {limit_seconds:g} s")
    return HelperAnswer(printed=printed, exit_code=code)


@contextlib.contextmanager
def _ended_with_us(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ends the process on exit, or when this process ends: a download runs in its own thread, which
    an interrupt does not reach."""

    def end() -> None:
        _end(process)

    atexit.register(end)
    try:
        yield
    finally:
        end()
        atexit.unregister(end)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
