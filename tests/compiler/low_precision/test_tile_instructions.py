"""Permission is asked for by the kernel itself."""

from __future__ import annotations

import subprocess
import sys

from tests.compiler.low_precision.test_tile_kernel import needs_tiles

WITHOUT_ROOM = """
import ctypes

class Stack(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]

room = ctypes.create_string_buffer(4096)
stack = Stack(ctypes.cast(room, ctypes.c_void_p), 0, 4096)
"""
"""Linux permits tiles only where each alternative stack for signals has room for them."""
KERNEL = """
from tests.compiler.low_precision.product_kernels import matrices
from tests.compiler.low_precision.test_tile_kernel import computed, drawn
print(computed(matrices((4,), 64, 32), drawn(4, 64)).shape)
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "import sys; sys.path.insert(0, '.')\n" + program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@needs_tiles
def test_a_process_that_asked_for_nothing_runs_a_kernel() -> None:
    assert run(KERNEL).stdout.strip() == "(4, 32)"


@needs_tiles
def test_without_permission_a_kernel_is_an_error_and_no_crash() -> None:
    taken = "print(ctypes.CDLL(None).sigaltstack(ctypes.byref(stack), None))\n"
    found = run(
        WITHOUT_ROOM + "import tests.compiler.low_precision.test_tile_kernel\n" + taken + KERNEL
    )
    assert found.stdout.strip() == "0"
    assert "this machine does not permit AMX tiles" in found.stderr
    assert found.returncode == 1
