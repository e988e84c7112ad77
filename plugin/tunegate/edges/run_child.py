"""The first lines of every child process: `python -m tunegate.edges.run_child PARENT MODULE`.

The child asks the kernel to be killed when its parent dies, then serves MODULE's `answer`.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys

import msgspec

from tunegate.edges.frames import claim_standard_output, read_frame, write_frame

_PR_SET_PDEATHSIG = 1


def main(parent: int, module: str) -> int:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return 1  # the parent died before the kernel knew
    output = claim_standard_output()
    program = importlib.import_module(module)
    decoder = msgspec.msgpack.Decoder(program.Request)
    while (body := read_frame(sys.stdin.buffer)) is not None:
        write_frame(output, msgspec.msgpack.encode(program.answer(decoder.decode(body))))
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
