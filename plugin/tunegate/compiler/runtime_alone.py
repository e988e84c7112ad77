"""Imports TVM's runtime without its compiler, in a process that measures or serves.

Its Python part then asks for a hundred types that only the compiler has. Each answer is a C++ error
with a stack trace, and the first trace reads the debug symbols of every library in the process:
half of the import time where Python came with its own symbols. So it asks only for types that
exist.
"""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_LOADS_THE_LIBRARIES = "tvm.base"
_ASKED = "_object_type_key_to_index"


BRIEF_WAITS = {"TVM_THREAD_POOL_SPIN_COUNT": "1000"}
"""Lets threads spin for half a millisecond between two kernels: TVM's own tenth of a second holds
the cores that ONNX Runtime's threads in the same process need."""


def thread_variables(threads: int) -> dict[str, str]:
    """Returns the variables that give TVM's kernels this many threads, unbound: a thread bound to a
    core waits there for whoever else is on it."""
    return {"TVM_NUM_THREADS": str(threads), "TVM_BIND_THREADS": "0"}


def set_threads(threads: int) -> None:
    """Sets the variables in this process, before TVM is imported and its threads begin."""
    os.environ.update(thread_variables(threads))


def import_runtime() -> None:
    """Imports TVM without its compiler, which takes a third of the time."""
    os.environ["TVM_USE_RUNTIME_LIB"] = "1"
    with _types_that_there_are():
        importlib.import_module("tvm")


@contextmanager
def _types_that_there_are() -> Iterator[None]:
    """Limits TVM's questions to registered types; changes nothing in a version without that
    function."""
    core = importlib.import_module("tvm_ffi.core")
    ask = getattr(core, _ASKED, None)
    if ask is None:
        yield
        return

    def find_type(key: str) -> object:
        is_loaded = _LOADS_THE_LIBRARIES in sys.modules
        return None if is_loaded and key not in _registered_types() else ask(key)

    setattr(core, _ASKED, find_type)
    try:
        yield
    finally:
        setattr(core, _ASKED, ask)


@cache
def _registered_types() -> frozenset[str]:
    registry = importlib.import_module("tvm_ffi.registry")
    return frozenset(map(str, registry.get_registered_type_keys()))
