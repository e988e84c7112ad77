"""TVM's runtime, with its compiler in the process or without (`TVM_USE_RUNTIME_LIB`)."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import tvm
from tvm.runtime.vm import VirtualMachine

_EXTRA = "libtvm_runtime_extra.so"


def machine_of(library: Path, device: Any) -> Any:
    """A virtual machine for an artifact's library."""
    _load_extra()
    return VirtualMachine(tvm.runtime.load_module(str(library)), device)


@cache
def _load_extra() -> None:
    """Sorting, random numbers and the like: TVM itself loads them with the compiler only."""
    ctypes.CDLL(str(Path(str(tvm.__file__)).parent / "lib" / _EXTRA))
