"""Runs a user's command line without a shell, within limits of time and memory."""

import contextlib
import math
import os
import resource
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, cast

import msgspec

from tunegate.errors import ConfigError, MeasurementError
from tunegate.redaction import redact, secrets_of
from tunegate.system.processes import interpreter
from tunegate.system.processes.signals import raise_if_cancelled

_PIECE_BYTES = 65536
_MAX_WHAT = 240
"""The most characters of what a command did: a line that it said last can be long."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """The directory, variables and limits of a command; by default the user's own directory and
    variables. `most_bytes` limits its output (a million latencies), `memory_bytes` each of its
    processes."""

    directory: Path | None = None
    variables: Mapping[str, str] | None = None
    limit_seconds: float = 600.0
    most_bytes: int = 16 * 1024 * 1024
    memory_bytes: int | None = None


_USERS = Surroundings()


def output_of(line: str, *more: str, within: Surroundings = _USERS) -> str:
    """Runs a user's command line with the arguments `more` added, and returns its output. Raises
    MeasurementError if it cannot be run, fails, prints without end, or does not end in time."""
    with (
        interpreter.marking_programs() as mark,
        _start(line, more, within, mark) as process,
    ):
        try:
            _limit(process.pid, within, mark)
            with interpreter.group_guard(process.pid):
                output, errors = _read_output(process, line, within)
        finally:
            _end(process, mark)
    if process.returncode != 0:
        last = errors.strip().splitlines()[-1:] or ["it said nothing"]
        raise command_error(line, f"exited with {process.returncode}: {last[0]}")
    return output


def require_program(line: str) -> None:
    """Raises ConfigError if the command line begins with no program that is here."""
    why = "no such program"
    try:
        program = next(iter(shlex.split(line)), "")
    except ValueError as error:
        program, why = "", str(error)
    if shutil.which(program) is None:
        is_file = "/" in program and os.path.isfile(program)  # noqa: PTH113 -- too long a name is none
        why = "not executable" if is_file else why
        raise ConfigError(f"{command_error(line, f'cannot be run ({why})')}. Correct it.")


def command_error(line: str, what: str) -> MeasurementError:
    """Returns the error of a command line. Neither it nor what it did or said shows a secret of the
    job."""
    secrets = secrets_of(os.environ)
    return MeasurementError(f"`{redact(line, secrets)}` {redact(what, secrets)[:_MAX_WHAT]}")


def printed_number(word: str) -> float | None:
    """Returns the finite number that a command printed, None for anything else."""
    try:
        number = float(word)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _start(
    line: str, more: tuple[str, ...], within: Surroundings, mark: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    variables = os.environ if within.variables is None else within.variables
    try:
        return subprocess.Popen(
            [*(shlex.split(line) or [""]), *more],  # else `more` would name the program
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=within.directory,
            env={**variables, **mark},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error  # without a quoted word
        raise command_error(line, f"cannot be run ({why})") from error


def _limit(pid: int, within: Surroundings, mark: Mapping[str, str]) -> None:
    interpreter.mark_process(pid, mark)
    if within.memory_bytes is not None:
        most = (within.memory_bytes, within.memory_bytes)
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            resource.prlimit(pid, resource.RLIMIT_DATA, most)


def _read_output(
    process: subprocess.Popen[bytes], line: str, within: Surroundings
) -> tuple[str, str]:
    """Reads until the command has ended, without waiting for processes it leaves behind."""
    until = time.monotonic() + within.limit_seconds
    pipes = [cast("IO[bytes]", pipe) for pipe in (process.stdout, process.stderr)]
    texts = {pipe.fileno(): bytearray() for pipe in pipes}
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            raise_if_cancelled()
            has_ended = process.poll() is not None
            wait_seconds = min(1.0, max(0.0, until - time.monotonic()))
            ready = selector.select(0 if has_ended else wait_seconds)
            for key, _ in ready:
                _read_piece(selector, key, texts)
            if has_ended and not ready:
                break
            _refuse_endless(line, within, until, texts.values())
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, until - time.monotonic()))
    if process.returncode is None:
        raise _endless(line, within)
    output, errors = (texts[pipe.fileno()].decode(errors="replace") for pipe in pipes)
    return output, errors


def _endless(line: str, within: Surroundings) -> MeasurementError:
    return command_error(line, f"did not end in {within.limit_seconds:.0f} s")


def _read_piece(
    selector: selectors.BaseSelector, key: selectors.SelectorKey, texts: Mapping[int, bytearray]
) -> None:
    piece = os.read(key.fd, _PIECE_BYTES)
    texts[key.fd].extend(piece)
    if not piece:
        selector.unregister(key.fileobj)


def _refuse_endless(
    line: str, within: Surroundings, until: float, texts: Iterable[bytearray]
) -> None:
    if time.monotonic() >= until:
        raise _endless(line, within)
    if any(len(text) > within.most_bytes for text in texts):
        raise command_error(line, f"printed more than {within.most_bytes >> 20} MiB")


def _end(process: subprocess.Popen[bytes], mark: Mapping[str, str]) -> None:
    """Ends the process with all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    interpreter.end_marked(mark)
