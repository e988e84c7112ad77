"""Messages between our processes: MessagePack bodies, each after its length."""

import os
import struct
import sys
from typing import BinaryIO

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

    def feed(self, received: bytes) -> list[bytes]:
        """Adds bytes, and returns the bodies that are complete. Raises FrameError if the header
        announces a body that is too large."""
        self._bytes += received
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
