"""A child process that answers one request at a time, and can be killed at any moment."""

import contextlib
import functools
import os
import re
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Generic, NamedTuple, TypeVar, cast

import msgspec

from tunegate.artifacts.artifact_io import NOT_JSON
from tunegate.errors import LIMIT_ADVICE, NO_THREAD, EnvironmentUnfitError
from tunegate.system.processes import interpreter
from tunegate.system.processes.memory_limit import MemoryLimit
from tunegate.system.processes.run_child import LAST_WORDS, FrameBuffer, FrameError, frame_body
from tunegate.system.processes.signals import raise_if_cancelled

_Reply = TypeVar("_Reply")

_START = "tunegate.system.processes.run_child"
_SURELY_IN_THE_PIPE = 4096
"""The number of bytes that always fit the pipe, whatever the child does."""
_LOOK_SECONDS = 0.2
_STOPPED_SECONDS = 10.0
_MAX_OF_A_LOOK = 2.0
"""The longest pause between looks that counts as the child's. If this process itself was stopped
for longer, the child was not."""
_END_SECONDS = 10.0
_MOST_WORDS = 300
"""The most characters kept of a child's last words."""
_MOST_TRIED = 32
"""The most threads that are tried."""
_NO_THREAD = "can't start new thread"
_LIMIT_MET = re.compile(r"\w+: \[Errno (\d+)\]")
"""The last words of a child that met a limit: Python's own."""
_THROWN = "what():"
"""The C++ runtime writes it before the text of an uncaught error."""


class ChildDiedError(Exception):
    """The process ended without a reply; `str` says how, and `by_signal` that it did not end
    itself. `from_outside`: a lack of memory or somebody's SIGKILL ended it, which may be otherwise
    another time."""

    def __init__(self, how: str, *, by_signal: bool = False, from_outside: bool = False) -> None:
        super().__init__(how)
        self.by_signal, self.from_outside = by_signal, from_outside


class Child(Generic[_Reply]):
    """A child that answers with `module`. It is isolated (see interpreter.py), leads its own
    process group, and dies with its parent. Paths in its requests are absolute. `python` is that of
    an environment whose packages it imports before ours.

    While its parent waits, the child is watched: it is killed if it exceeds its memory, or somebody
    stopped it. The waiting caller limits its time.
    """

    def __init__(
        self,
        module: str,
        replies: type[_Reply],
        *,
        variables: Mapping[str, str],
        memory: MemoryLimit,
        log: Path,
        python: Path | None = None,
    ) -> None:
        _refuse_few_threads()
        self._memory, self._mark = memory, interpreter.mark()
        self._is_gone = False
        self._watched_at, self._stopped_seconds = time.monotonic(), 0.0
        self._writing: threading.Thread | None = None
        self._decoder = msgspec.msgpack.Decoder(replies)
        self._buffer = FrameBuffer()
        self.log = log
        with log.open("ab") as errors:
            self._began_at = errors.tell()
            self._process = interpreter.begin(
                _START,
                str(os.getpid()),
                module,
                variables={**variables, **memory.variables, **self._mark},
                errors=errors,
                python=python,
            )
        self._input = cast("BinaryIO", self._process.stdin)
        self._output = cast("BinaryIO", self._process.stdout)
        os.set_blocking(self._output.fileno(), False)
        self.busy_since: float | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_ready(self) -> bool:
        """Returns True: requests wait in the child's pipe."""
        return True

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def fileno(self) -> int:
        return self._output.fileno()

    def send(self, request: msgspec.Struct) -> None:
        """Sends a request to the idle child without waiting for it to read. Raises
        ChildDiedError."""
        self.busy_since = time.monotonic()
        frame = frame_body(msgspec.msgpack.encode(request))
        if len(frame) > _SURELY_IN_THE_PIPE:
            self._writing = threading.Thread(target=self._write_all, args=(frame,), daemon=True)
            self._writing.start()
            return
        try:
            self._write(frame)
        except OSError as error:
            raise self._end_error() from error

    def receive(self) -> _Reply | None:
        """Returns the reply if it has arrived whole, else None. Raises ChildDiedError, and
        KeyboardInterrupt if a cancel was lost."""
        raise_if_cancelled()
        piece = self._output.read()
        if piece is None and not self._is_gone:
            self._look()
            return None
        if not piece:
            raise self._end_error()
        try:
            bodies = self._buffer.feed(piece)
            if not bodies:
                return None
            self.busy_since = None
            if bodies[0].startswith(LAST_WORDS):
                raise self._failure_error(bodies[0].removeprefix(LAST_WORDS))
            return self._decoder.decode(bodies[0])
        except (FrameError, *NOT_JSON) as error:
            self.kill()
            message = f"gave no answer of ours ({str(error)[:200]})"
            raise ChildDiedError(message) from error

    def resident_bytes(self) -> int:
        return process_state(self.pid).resident_bytes

    def kill(self) -> None:
        """Ends the whole process group now, and what has left it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # a driver or a disk holds the process
            self._process.wait(timeout=_END_SECONDS)
        interpreter.end_marked(self._mark)
        if self._writing is not None:
            self._writing.join(_END_SECONDS)
        for stream in (self._input, self._output):
            with contextlib.suppress(OSError):
                stream.close()

    def _write_all(self, frame: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):  # the next `receive` says that it is gone
            self._write(frame)

    def _write(self, frame: bytes) -> None:
        self._input.write(frame)
        self._input.flush()

    def _look(self) -> None:
        """Raises ChildDiedError if the child exceeded its memory or was stopped. Sees that it is
        gone even if something that it started keeps its output open."""
        now = time.monotonic()
        seconds = now - self._watched_at
        if seconds < _LOOK_SECONDS:
            return
        self._watched_at = now
        self._is_gone = not self.is_running  # what it said before is read first
        state = process_state(self.pid)
        if state.resident_bytes > self._memory.limit_bytes:
            self.kill()
            how = f"took more than the {self._gigabytes} of memory that it may take"
            raise ChildDiedError(how, from_outside=True)
        still = self._stopped_seconds + min(seconds, _MAX_OF_A_LOOK)
        self._stopped_seconds = still if state.is_stopped else 0.0
        if self._stopped_seconds > _STOPPED_SECONDS:
            self.kill()
            how = f"was stopped by a signal for {_STOPPED_SECONDS:.0f} s, and killed"
            raise ChildDiedError(how, by_signal=True, from_outside=True)

    @property
    def _gigabytes(self) -> str:
        return f"{self._memory.limit_bytes / 1e9:.1f} GB"

    def _failure_error(self, words: bytes) -> ChildDiedError:
        """Returns the error for a process that gave the reason for its end. Raises
        EnvironmentUnfitError if that is a limit of this machine, which no model can change."""
        self.kill()
        text = words.decode(errors="replace")[:_MOST_WORDS]
        if text == _NO_THREAD:
            raise EnvironmentUnfitError(NO_THREAD)
        match = _LIMIT_MET.match(text)
        if match and (advice := LIMIT_ADVICE.get(int(match[1]))):
            message = f"this machine refuses: {text}. {advice}"
            raise EnvironmentUnfitError(message)
        return ChildDiedError(f"failed ({text})")

    def _end_error(self) -> ChildDiedError:
        """Returns the error for a process that is gone. Raises EnvironmentUnfitError if the machine
        gave it too little."""
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return ChildDiedError("closed its output")
        if code >= 0:
            return ChildDiedError(f"exited with {code}")
        if -code == signal.SIGINT:  # OpenBLAS sends it to its own process
            raise EnvironmentUnfitError(NO_THREAD)
        seconds, _ = resource.getrlimit(resource.RLIMIT_CPU)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        is_over = resource.RLIM_INFINITY != seconds <= usage.ru_utime + usage.ru_stime
        if is_over and -code in {signal.SIGXCPU, signal.SIGKILL}:
            message = f"a process may take {seconds} s of CPU here, and is killed. Raise ulimit -t."
            raise EnvironmentUnfitError(message)
        is_refusal = -code in {signal.SIGABRT, signal.SIGSEGV} and self._memory.is_kernels
        limit = f" (it may take {self._gigabytes} of memory)" if is_refusal else ""
        thrown = self._uncaught_error() if -code == signal.SIGABRT else ""
        how = f"was killed by {signal.Signals(-code).name}{f': {thrown}' if thrown else limit}"
        return ChildDiedError(how, by_signal=True, from_outside=-code == signal.SIGKILL)

    def _uncaught_error(self) -> str:
        """Returns the uncaught C++ error that aborted the process: the last one in the log since
        the child began. A failed device makes destructors throw."""
        with contextlib.suppress(OSError), self.log.open("rb") as log:
            log.seek(self._began_at)
            lines = log.read().decode(errors="replace").splitlines()
            errors = [line.partition(_THROWN)[2].strip() for line in lines if _THROWN in line]
            return errors[-1][:_MOST_WORDS] if errors else ""
        return ""


@functools.cache
def _refuse_few_threads() -> None:
    """Raises EnvironmentUnfitError where not even a small child could start its threads: the
    libraries in it would call that a fault of the model."""
    end, threads = threading.Event(), []
    try:
        for _ in range(min(2 * (os.cpu_count() or 1) + 8, _MOST_TRIED)):
            threads.append(threading.Thread(target=end.wait))
            threads[-1].start()
    except RuntimeError as error:
        threads.pop()
        raise EnvironmentUnfitError(NO_THREAD) from error
    finally:
        end.set()
        for thread in threads:
            thread.join()


# The kernel's view of a process, from one small file: it is read many times a second.

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_STATE, _RESIDENT_PAGES = 0, 21
"""Field numbers behind the program's name, which may hold anything."""


class ProcessState(NamedTuple):
    """A process's state; `is_stopped` means by a signal, until another one continues it."""

    resident_bytes: int
    is_stopped: bool


def process_state(pid: int) -> ProcessState:
    """Returns the state of a process, empty if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return ProcessState(int(fields[_RESIDENT_PAGES]) * _PAGE_BYTES, fields[_STATE] == "T")
    except (OSError, IndexError, ValueError):
        return ProcessState(0, is_stopped=False)
