"""The calls of a model, each split into its kernel's loop nests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tunegate_whole_model.native.program import NativeBuffer, NativeCall, NativeProgram, align_up
from tunegate_whole_model.native.straight_code import native_buffer
from tunegate_whole_model.nests.nests import Kernel
from tunegate_whole_model.stages.parts import StagePart


class TakenApart(NamedTuple):
    """The calls of nests in order, and a part for each. Buffers between the nests of a kernel are
    behind the end of the program's arena."""

    calls: list[NativeCall]
    parts: list[StagePart]


def taken_apart(program: NativeProgram, kernels: Mapping[str, Kernel]) -> TakenApart:
    """Splits the calls; `kernels` are theirs, by symbol."""
    found = TakenApart([], [])
    end = align_up(program.arena_bytes)
    for call in program.calls:
        kernel = kernels[call.symbol]
        shared, end = _buffers_between(kernel, end)
        buffers = (*call.buffers, *shared)
        for n, nest in enumerate(kernel.nests):
            part = StagePart(
                kernels=(len(found.calls),),
                blocks=nest.blocks,
                reads=_spans(buffers, nest.reads),
                writes=_spans(buffers, nest.writes),
            )
            taken = tuple(buffers[each] for each in nest.arguments)
            made = NativeCall(nest_symbol(call.symbol, n), taken, has_share=nest.blocks > 1)
            found.parts.append(part)
            found.calls.append(made)
    return found


def nest_symbol(symbol: str, nest: int) -> str:
    return f"{symbol}_nest{nest}"


def _buffers_between(kernel: Kernel, end: int) -> tuple[list[NativeBuffer], int]:
    """Returns the buffers between nests, behind the end of the arena, and its new end."""
    found = []
    for each in kernel.shared:
        found.append(native_buffer("arena", end, each.shape, each.dtype))
        end += align_up(max(1, found[-1].size_bytes))
    return found, end


def _spans(buffers: Sequence[NativeBuffer], numbers: Sequence[int]) -> tuple[Any, ...]:
    return tuple(sorted({buffers[each].span for each in numbers}))
