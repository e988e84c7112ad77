"""A build worker that misbehaves as the candidate's module text says;
stands in for TVM's crashes."""

import errno
import gc
import os
import signal
import time

from tunegate.tune.protocol import Measure, Measured

Request = Measure


class _Lost:
    """Memory of a device that has failed: nobody can free it."""

    def __del__(self) -> None:
        os.abort()


_LIMITS = {
    "threads": RuntimeError("can't start new thread"),
    "files": OSError(errno.EMFILE, "Too many open files"),
}
_SIGNALS = {"OpenBLAS": signal.SIGINT, "killed": signal.SIGKILL}


def _leave_a_daemon() -> None:
    if left := os.fork():
        os.write(2, f"daemon {left}\n".encode())
        os._exit(1)
    os.setsid()
    os.execve("/bin/sleep", ["sleep", "600"], {})


def handle_request(request: Measure) -> Measured:
    match request.candidate.module:
        case "crash":
            os.abort()
        case "abort":
            os.write(2, b"terminate called\n  what():  CUDA error (999)\n")
            os.abort()
        case "device":
            lost = _Lost()
            message = f"Traceback of {lost}\nCUDA error 700"
            raise RuntimeError(message)
        case "threads" | "files":
            raise _LIMITS[request.candidate.module]
        case "OpenBLAS" | "killed":
            os.kill(os.getpid(), _SIGNALS[request.candidate.module])
        case "exit":
            os._exit(1)
        case "daemon":
            _leave_a_daemon()
        case "hang":
            time.sleep(600)
        case "hoard":
            bytearray(2**32)
        case "swell":
            taken = b"x" * 2**28
            time.sleep(min(600, len(taken)))
        case "collect":
            frozen = gc.get_freeze_count() if gc.isenabled() else 0
            return Measured(number=request.candidate.number, status="ok", nanoseconds=(frozen,))
        case _:
            pass
    return Measured(number=request.candidate.number, status="ok", nanoseconds=(1000,))
