"""CUDA's intrinsics in this process. Parsed by a process of its own, which takes 10 s and leaves
them for all others; under a test runner it would take 60."""

import fcntl
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tunegate.compiler.intrinsics import load_intrinsics

_PROGRAM = "from tunegate.compiler import intrinsics; intrinsics.load_intrinsics('cuda')"


@cache
def load_cuda_intrinsics() -> None:
    """Loads them. Of workers beside each other one parses, and the others wait for it."""
    with Path(tempfile.gettempdir(), f"tunegate-intrinsics-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run([sys.executable, "-c", _PROGRAM], check=True)
    load_intrinsics("cuda")
