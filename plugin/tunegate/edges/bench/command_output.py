"""A command line of the user's, run without a shell: what it prints,
as far as time and memory go."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from typing import IO, cast

from tunegate.errors import MeasurementError

_LIMIT_SECONDS = 600.0
_MAX_BYTES = 16 * 1024 * 1024
"""A million latencies."""
_PIECE_BYTES = 65536


def output_of(line: str, *more: str) -> str:
    """What it prints; `more` are arguments behind those of the line. Raises MeasurementError for a
    command that cannot be run, fails, prints without end, or does not end in ten minutes."""
    with _begun(line, more) as process:
        try:
            printed, said = _read(process, line)
        finally:
            _end(process)
    if process.returncode != 0:
        last = said.strip().splitlines()[-1:] or ["it said nothing"]
        message = f"`{line}` exited with {process.returncode}: {last[0][:200]}"
        raise MeasurementError(message)
    return printed


def _begun(line: str, more: tuple[str, ...]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [*shlex.split(line), *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        message = f"`{line}` cannot be run ({error})"
        raise MeasurementError(message) from error


def _read(process: subprocess.Popen[bytes], line: str) -> tuple[str, str]:
    """Reads until the command has ended: what it leaves running behind it is not waited for."""
    until = time.monotonic() + _LIMIT_SECONDS
    pipes = [cast("IO[bytes]", pipe) for pipe in (process.stdout, process.stderr)]
    texts = {pipe.fileno(): bytearray() for pipe in pipes}
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            has_ended = process.poll() is not None
            wait_seconds = min(1.0, max(0.0, until - time.monotonic()))
            ready = selector.select(0 if has_ended else wait_seconds)
            for key, _ in ready:
                _read_piece(selector, key, texts)
            if has_ended and not ready:
                break
            _refuse_endless(line, until, texts.values())
    process.wait(max(0.0, until - time.monotonic()))
    printed, said = (texts[pipe.fileno()].decode(errors="replace") for pipe in pipes)
    return printed, said


def _read_piece(
    selector: selectors.BaseSelector, key: selectors.SelectorKey, texts: Mapping[int, bytearray]
) -> None:
    piece = os.read(key.fd, _PIECE_BYTES)
    texts[key.fd].extend(piece)
    if not piece:
        selector.unregister(key.fileobj)


def _refuse_endless(line: str, until: float, texts: Iterable[bytearray]) -> None:
    if time.monotonic() >= until:
        raise MeasurementError(f"`{line}` did not end in {_LIMIT_SECONDS:.0f} s")
    if any(len(text) > _MAX_BYTES for text in texts):
        raise MeasurementError(f"`{line}` printed more than {_MAX_BYTES >> 20} MiB")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the process with all that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
