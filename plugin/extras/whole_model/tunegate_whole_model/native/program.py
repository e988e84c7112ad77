"""A model as straight-line code: kernels called in order, on an arena laid out when it is built."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate_whole_model.stages.parts import Span
from tunegate_whole_model.stages.steps import Steps

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

    @property
    def span(self) -> Span:
        """Its bytes; an input is one byte, that of its number."""
        size = 1 if self.place == "input" else max(1, self.size_bytes)
        return Span(self.place, self.at, self.at + size)


class NativeCall(msgspec.Struct, frozen=True):
    """One kernel by its symbol, with the buffers it reads and then those it writes. One that
    `has_share` takes the first of its blocks that it runs and that behind the last besides."""

    symbol: str
    buffers: tuple[NativeBuffer, ...]
    has_share: bool = False


class NativeTensor(msgspec.Struct, frozen=True):
    """An input or output of the model, and where the model has it."""

    name: str
    dtype: str
    buffer: NativeBuffer


class NativeProgram(msgspec.Struct, frozen=True, kw_only=True):
    """All that the generated C file says. `steps` are those of each thread, of parts that are
    `pieces` of calls, where all threads run the whole model; without, kernels start threads."""

    inputs: tuple[NativeTensor, ...]
    outputs: tuple[NativeTensor, ...]
    calls: tuple[NativeCall, ...]
    arena_bytes: int
    weights: bytes
    threads: int
    pieces: tuple[tuple[int, ...], ...] = ()
    steps: tuple[Steps, ...] = ()


def aligned(size_bytes: int) -> int:
    """The next multiple of the alignment."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
