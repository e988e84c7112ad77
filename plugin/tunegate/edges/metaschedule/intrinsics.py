"""Register the tensor intrinsics of one kind of target, and no others.

`tvm.s_tir.tensor_intrin` imports the intrinsics of every target (6 to 10 s on two cores, nearly
all of it CUDA's), and every TuneContext and build worker imports that package. Here the package
is put in place empty, and only the wanted submodule is loaded into it (0.2 s for x86).
"""

from __future__ import annotations

import importlib
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tvm.s_tir

_PACKAGE = "tvm.s_tir.tensor_intrin"
_MODULES = {"llvm": ("x86",), "cuda": ("cuda",)}


def load_intrinsics(kind: str) -> None:
    """Load the intrinsics of target kind `llvm` or `cuda`; a second call adds to the first."""
    if _PACKAGE not in sys.modules:
        package = types.ModuleType(_PACKAGE)
        package.__path__ = [str(Path(str(tvm.s_tir.__file__)).parent / "tensor_intrin")]
        sys.modules[_PACKAGE] = package
        tvm.s_tir.tensor_intrin = package
    # TVM looks at every frame of the stack for each of hundreds of intrinsics: a thread's is short, and
    # under a test runner that is 18 s instead of 81.
    with ThreadPoolExecutor(1) as fresh_stack:
        for name in _MODULES[kind]:
            fresh_stack.submit(importlib.import_module, f"{_PACKAGE}.{name}").result()
