"""A model as straight-line code: kernels called in order, on an arena laid out at build time."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate_whole_model.stages.parts import Span
from tunegate_whole_model.stages.steps import Steps

BufferPlace = Literal["input", "arena", "weight"]
ALIGNMENT_BYTES = 64
"""The alignment that kernels expect of every buffer."""


class NativeBuffer(msgspec.Struct, frozen=True):
    """A tensor of a call. `at` is the number of the input, or the byte offset in the arena or among
    the weights. `bits` and `code` are DLPack's."""

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
        """The buffer's bytes; an input counts as one byte, at its number."""
        size = 1 if self.place == "input" else max(1, self.size_bytes)
        return Span(self.place, self.at, self.at + size)


class NativeCall(msgspec.Struct, frozen=True):
    """One kernel by its symbol, with the buffers it reads and then those it writes. If it
    `has_share` it also takes the first block of its share, and the one behind the last."""

    symbol: str
    buffers: tuple[NativeBuffer, ...]
    has_share: bool = False


class NativeTensor(msgspec.Struct, frozen=True):
    """An input or output of the model, and its place."""

    name: str
    dtype: str
    buffer: NativeBuffer


class NativeProgram(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the generated C file. If all threads run the whole model, `steps` are those of
    each thread, over parts that are `pieces` of calls; otherwise kernels start threads."""

    inputs: tuple[NativeTensor, ...]
    outputs: tuple[NativeTensor, ...]
    calls: tuple[NativeCall, ...]
    arena_bytes: int
    weights: bytes
    threads: int
    pieces: tuple[tuple[int, ...], ...] = ()
    steps: tuple[Steps, ...] = ()


def align_up(size_bytes: int) -> int:
    """Returns the next multiple of the alignment."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
