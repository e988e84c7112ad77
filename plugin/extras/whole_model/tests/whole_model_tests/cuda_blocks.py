"""The text of a persistent kernel, run on a CPU: blocks are threads of the system, which meet at
the kernel's own barrier."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

_DEVICE = Path(__file__).parent / "device.h"
_LAUNCH = """
extern "C" int launch_{name}(char** at, int grid, int blocks) {{
  return device::launch([=] {{ {name}({arguments}); }}, grid, blocks, {threads});
}}
"""


class SimulatedKernel:
    """Compiles a text without its head. `count` are the pointers that each kernel takes, and
    `patience` the looks at a clock after which a block that waits gives up."""

    def __init__(
        self, text: str, names: Sequence[str], count: int, threads: int, into: Path, patience: int
    ) -> None:
        source, library = into / "kernel.cpp", into / "kernel.so"
        arguments = ", ".join(f"at[{n}]" for n in range(count))
        launches = (_LAUNCH.format(name=n, arguments=arguments, threads=threads) for n in names)
        source.write_text("\n".join((f'#include "{_DEVICE}"', text, *launches)))
        patient = f"-DTUNEGATE_MOST_CYCLES={patience}"
        flags = (
            patient,
            "-O1",
            "-std=c++17",
            "-fPIC",
            "-shared",
            "-pthread",
            "-w",
            "-fmax-errors=5",
        )
        subprocess.run(["g++", *flags, str(source), "-o", str(library)], check=True)
        self._library = ctypes.CDLL(str(library))

    def run(
        self, name: str, buffers: Sequence[np.ndarray], grid: int, blocks: int | None = None
    ) -> bool:
        """Returns whether it has ended well: that is, no block has given up waiting."""
        at = (ctypes.c_void_p * len(buffers))(*(each.ctypes.data for each in buffers))
        launch = getattr(self._library, f"launch_{name}")
        return not launch(at, grid, grid if blocks is None else blocks)
