"""TVM's runtime, with its compiler in the process or without (`TVM_USE_RUNTIME_LIB`)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import tvm
from tvm.runtime.vm import VirtualMachine

_EXTRA = "libtvm_runtime_extra.so"


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def machine_of(library: Path, device: Any) -> Any:
    """A virtual machine for an artifact's library."""
    _load_extra()
    return VirtualMachine(tvm.runtime.load_module(str(library)), device)


def device_of_kind(kind: str) -> Any:
    """The device for a target of this kind."""
    return tvm.cuda() if kind == "cuda" else tvm.cpu()


def arguments_of(inputs: Iterable[_Named], feed: Mapping[str, Any], device: Any) -> list[Any]:
    """The arrays of inputs, on the device, in their order."""
    return [tvm.runtime.tensor(feed[each.name], device) for each in inputs]


@cache
def _load_extra() -> None:
    """Sorting, random numbers and the like: TVM itself loads them with the compiler only."""
    ctypes.CDLL(str(Path(str(tvm.__file__)).parent / "lib" / _EXTRA))
