"""The first lines of every child process: `python -m tunegate.system.processes.run_child PARENT
MODULE`.

The child asks the kernel to be killed when its parent dies, limits itself as told, and serves
MODULE's `handle_request`. If that raises, the error is the child's last message.
"""

import ctypes
import gc
import importlib
import os
import resource
import signal
import sys
import traceback
from typing import Any, BinaryIO, NoReturn

import msgspec

from tunegate.system.processes import frames

_PR_SET_PDEATHSIG = 1
MEMORY_VARIABLE = "TUNEGATE_MEMORY_BYTES"
"""The variable with a child's memory limit in bytes."""


def main(parent: int, module: str) -> int:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return 1  # the parent died before the kernel knew
    _limit(os.environ.get(MEMORY_VARIABLE, ""))
    output = frames.claim_standard_output()
    program = _import_frozen(module)
    decoder = msgspec.msgpack.Decoder(program.Request)
    while (body := frames.read_frame(sys.stdin.buffer)) is not None:
        request = decoder.decode(body)
        try:
            reply = program.handle_request(request)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the parent reports it
            _end(output, error)
        frames.write_frame(output, msgspec.msgpack.encode(reply))
    return 0


def _end(output: BinaryIO, error: Exception) -> NoReturn:
    """Ends the process at once: on a failed device, whatever would free its memory fails too, and
    aborts."""
    traceback.print_exc()
    sys.stderr.flush()
    lines = str(error).strip().splitlines()
    kind = "" if lines and isinstance(error, RuntimeError) else type(error).__name__
    words = ": ".join(filter(None, (kind, lines[-1].strip() if lines else "")))
    frames.write_frame(output, frames.LAST_WORDS + words.encode())
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


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
