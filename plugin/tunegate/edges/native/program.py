"""A model as straight-line code: kernels called in order, on an arena laid out when it is built."""

from __future__ import annotations

from typing import Literal

import msgspec

BufferPlace = Literal["input", "arena", "weight"]
ALIGNMENT_BYTES = 64
"""What kernels expect of every buffer."""


class NativeBuffer(msgspec.Struct, frozen=True):
    """A tensor of a call. `at` is the number of the input, or the offset in bytes in the arena or
    among the weights. `bits` and `code` are DLPack's."""

    place: BufferPlace
    at: int
    shape: tuple[int, ...]
    code: int
    bits: int

    @property
    def size_bytes(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count * ((self.bits + 7) // 8)


class NativeCall(msgspec.Struct, frozen=True):
    """One kernel by its symbol, with the buffers it reads and then those it writes."""

    symbol: str
    buffers: tuple[NativeBuffer, ...]


class NativeTensor(msgspec.Struct, frozen=True):
    """An input or output of the model, and where the model has it."""

    name: str
    dtype: str
    buffer: NativeBuffer


class NativeProgram(msgspec.Struct, frozen=True, kw_only=True):
    """All that the generated C file says."""

    inputs: tuple[NativeTensor, ...]
    outputs: tuple[NativeTensor, ...]
    calls: tuple[NativeCall, ...]
    arena_bytes: int
    weights: bytes
    threads: int


def aligned(size_bytes: int) -> int:
    """The next multiple of the alignment."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
