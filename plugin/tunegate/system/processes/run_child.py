"""The first lines of every child process: `python -m tunegate.system.processes.run_child PARENT
MODULE`.

The child asks the kernel to be killed when its parent dies, limits itself as told, and serves
MODULE's `handle_request`. If that raises, the error is the child's last message. Parents and
children write and read their messages by the functions at the end.
"""

import contextlib
import ctypes
import gc
import importlib
import os
import resource
import signal
import struct
import sys
import traceback
from typing import Any, BinaryIO, NoReturn

import msgspec

_PR_SET_PDEATHSIG = 1
MARK_VARIABLE = "TUNEGATE_CHILD"
"""The variable that marks a child and all that it starts: words, "-" and a random number."""
_MANY_MICROSECONDS = 2**61
"""A limit that no program reaches: some 70,000 years of a turn with realtime priority."""
MEMORY_VARIABLE = "TUNEGATE_MEMORY_BYTES"
"""The variable with a child's memory limit in bytes."""


def main(parent: int, module: str) -> int:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return 1  # the parent died before the kernel knew
    limit_realtime(0, os.environ.get(MARK_VARIABLE, ""))
    _limit(os.environ.get(MEMORY_VARIABLE, ""))
    output = claim_standard_output()
    program = _import_frozen(module)
    decoder = msgspec.msgpack.Decoder(program.Request)
    while (body := read_frame(sys.stdin.buffer)) is not None:
        request = decoder.decode(body)
        try:
            reply = program.handle_request(request)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the parent reports it
            _end(output, error)
        write_frame(output, msgspec.msgpack.encode(reply))
    return 0


def _end(output: BinaryIO, error: Exception) -> NoReturn:
    """Ends the process at once: on a failed device, whatever would free its memory fails too, and
    aborts."""
    traceback.print_exc()
    sys.stderr.flush()
    lines = str(error).strip().splitlines()
    kind = "" if lines and isinstance(error, RuntimeError) else type(error).__name__
    words = ": ".join(filter(None, (kind, lines[-1].strip() if lines else "")))
    write_frame(output, LAST_WORDS + words.encode())
    os._exit(1)


def _import_frozen(module: str) -> Any:
    """Imports the module, and exempts everything it imports from garbage collection. None of a
    compiler's hundred thousand objects is garbage: scanning them again and again takes a tenth of
    the import time, and a twentieth of a second in each full collection later."""
    gc.disable()
    program = importlib.import_module(module)
    gc.freeze()
    gc.enable()
    return program


def _limit(memory_bytes: str) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_bytes:
        # Mapped but unused memory, such as libraries and thread arenas, is not counted.
        resource.setrlimit(resource.RLIMIT_DATA, (int(memory_bytes), int(memory_bytes)))


def limit_realtime(process: int, mark: str) -> None:
    """Gives a process (0: this one) the limit that marks it. Whoever clears the variables keeps it:
    a lowered limit cannot be raised."""
    if not mark:
        return
    # It has ended, or has a lower limit: the variable alone marks it.
    with contextlib.suppress(OSError, ValueError):
        resource.prlimit(process, resource.RLIMIT_RTTIME, (marking_limit(mark),) * 2)


def marking_limit(mark: str) -> int:
    """Returns a mark as a limit in microseconds, of 60 of its bits."""
    return _MANY_MICROSECONDS + (int(mark.rpartition("-")[2], 16) >> 4)


# Messages between a child and its parent: MessagePack bodies, each after its length.

_HEADER = struct.Struct("<I")
MAX_FRAME_BYTES = 512 * 1024 * 1024
"""The largest body. The schedules of all tasks of a large model fit."""

LAST_WORDS = b"\xc1"
"""The first byte of a body that is the reason why its sender ends, and no message. MessagePack
never uses this byte."""


class FrameError(Exception):
    """The received bytes are no message of ours."""


def frame_body(body: bytes) -> bytes:
    """Returns the body after its length."""
    return _HEADER.pack(len(body)) + body


def write_frame(stream: BinaryIO, body: bytes) -> None:
    stream.write(frame_body(body))
    stream.flush()


def read_frame(stream: BinaryIO) -> bytes | None:
    """Returns the next body, None if the other side is gone."""
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    (length,) = _HEADER.unpack(header)
    body = stream.read(length)
    return body if len(body) == length else None


class FrameBuffer:
    """Collects bytes as they come, and gives whole bodies back."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        """Adds bytes, and returns the bodies that are complete. Raises FrameError if the header
        announces a body that is too large."""
        self._bytes += piece
        bodies = []
        while len(self._bytes) >= _HEADER.size:
            (length,) = _HEADER.unpack_from(self._bytes)
            if length > MAX_FRAME_BYTES:
                message = f"announced an answer of {length:,} bytes"
                raise FrameError(message)
            end = _HEADER.size + length
            if len(self._bytes) < end:
                break
            bodies.append(bytes(self._bytes[_HEADER.size : end]))
            del self._bytes[:end]
        return bodies


def claim_standard_output() -> BinaryIO:
    """Returns the child's private copy of its standard output; other prints then go to stderr."""
    private = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return private


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
