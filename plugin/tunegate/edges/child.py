"""A child process that answers one request at a time, and can be killed at any moment."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar, cast

import msgspec

from tunegate.edges import interpreter
from tunegate.edges.frames import FrameBuffer, write_frame
from tunegate.edges.memory_limit import resident_bytes

Reply = TypeVar("Reply")

_START = "tunegate.edges.run_child"


class ChildDiedError(Exception):
    """The process ended without an answer; `str` says how."""


class Child(Generic[Reply]):
    """One child that answers with `module`. It is isolated (see interpreter.py), leads a process group
    of its own, and dies with its parent. Paths in its requests are absolute."""

    def __init__(
        self, module: str, replies: type[Reply], *, variables: Mapping[str, str], log: Path
    ) -> None:
        self._decoder = msgspec.msgpack.Decoder(replies)
        self._buffer = FrameBuffer()
        self.log = log
        with log.open("ab") as errors:
            self._process = interpreter.begin(
                _START, str(os.getpid()), module, variables=variables, errors=errors
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
        """From the beginning: what it is sent waits in its pipe."""
        return True

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def fileno(self) -> int:
        return self._output.fileno()

    def send(self, request: msgspec.Struct) -> None:
        """Ask; the child must be idle. Raises ChildDiedError."""
        self.busy_since = time.monotonic()
        try:
            write_frame(self._input, msgspec.msgpack.encode(request))
        except OSError as error:
            raise ChildDiedError(self._obituary()) from error

    def receive(self) -> Reply | None:
        """The answer if it has come whole, else None. Raises ChildDiedError."""
        received = self._output.read()
        if received is None:
            return None
        if received == b"":
            raise ChildDiedError(self._obituary())
        bodies = self._buffer.feed(received)
        if not bodies:
            return None
        self.busy_since = None
        return self._decoder.decode(bodies[0])

    def resident_bytes(self) -> int:
        return resident_bytes(self.pid)

    def kill(self) -> None:
        """End the whole process group now."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._input, self._output):
            with contextlib.suppress(OSError):
                stream.close()

    def _obituary(self) -> str:
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return "closed its output"
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return f"exited with {code}"
