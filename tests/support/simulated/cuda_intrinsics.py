"""CUDA's intrinsics in this process. Parsed by a process of its own, which takes 10 s and leaves
them for all others; under a test runner it would take 60."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

from tunegate.compiler.intrinsics import load_intrinsics

_PROGRAM = "from tunegate.compiler import intrinsics; intrinsics.load_intrinsics('cuda')"


@cache
def load_cuda_intrinsics() -> None:
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True)
    load_intrinsics("cuda")
