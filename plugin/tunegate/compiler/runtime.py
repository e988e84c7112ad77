"""TVM's runtime, with its compiler in the process or without it (`TVM_USE_RUNTIME_LIB`)."""

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import tvm
import tvm_ffi
from tvm.runtime.vm import VirtualMachine

_RUN_OR_CAPTURE = "vm.builtin.cuda_graph.run_or_capture"
_EXTRA = "libtvm_runtime_extra.so"


class _HasName(Protocol):
    @property
    def name(self) -> str: ...


def machine_of(library: Path, device: Any) -> Any:
    """Returns a virtual machine for an artifact's library."""
    _load_extra()
    return VirtualMachine(tvm.runtime.load_module(str(library)), device)


def watched_machine(library: Path, device: Any, instrument: Callable[..., Any]) -> Any:
    """Returns a virtual machine that calls `instrument` before and after each kernel, and launches
    each kernel by itself even if the library has CUDA graphs. While a graph is captured nothing
    runs, so waiting for the device fails (CUDA error 906); and from the second inference on the
    graph is launched whole, and its kernels are invisible."""
    with _without_capture():
        machine = machine_of(library, device)
    machine.set_instrument(instrument)
    return machine


@contextmanager
def _without_capture() -> Iterator[None]:
    """Turns off graph capture; a virtual machine takes its functions when it is made."""
    before = tvm.get_global_func(_RUN_OR_CAPTURE, allow_missing=True)
    if before is None:  # TVM's part for CUDA is not loaded, so there is no device
        yield
        return
    invoke = tvm.get_global_func("vm.builtin.invoke_closure")

    def run(machine: Any, closure: Any, parameters: Iterable[Any], *_: object) -> Any:
        return invoke(machine, closure, *parameters)

    tvm_ffi.register_global_func(_RUN_OR_CAPTURE, run, override=True)
    try:
        yield
    finally:
        tvm_ffi.register_global_func(_RUN_OR_CAPTURE, before, override=True)


def device_of_kind(kind: str) -> Any:
    """Returns the device for a target of this kind."""
    return tvm.cuda() if kind == "cuda" else tvm.cpu()


def arguments_of(inputs: Iterable[_HasName], feed: Mapping[str, Any], device: Any) -> list[Any]:
    """Returns the input arrays on the device, in order."""
    return [tvm.runtime.tensor(feed[each.name], device) for each in inputs]


@cache
def _load_extra() -> None:
    """Loads sorting, random numbers and the like, which TVM loads only with the compiler."""
    ctypes.CDLL(str(Path(str(tvm.__file__)).parent / "lib" / _EXTRA))
