"""Loops and buffers of the kernels that are written out."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.tirx.script.builder import ir as T


def long(number: int) -> Any:
    return tirx.const(number, "int64")


def loop(count: int, threads: int) -> Any:
    """A loop whose steps several threads may share."""
    return T.parallel(long(count)) if threads > 1 else T.serial(long(count))


def whole_buffer(size: int, kind: str) -> Any:
    """Emits a buffer that is used by address: the compiler would keep of it only what loads and
    stores name."""
    buffer = T.alloc_buffer((size,), kind)
    T.evaluate(buffer.access_ptr("rw"))
    return buffer
