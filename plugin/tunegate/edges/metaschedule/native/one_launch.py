"""Straight-line code as one launch: every thread runs the whole model, with barriers between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tunegate.edges.metaschedule.native.straight_code import native_buffer
from tunegate.edges.metaschedule.whole.nests import Kernel, nests_of
from tunegate.edges.native.program import (
    ALIGNMENT_BYTES,
    NativeBuffer,
    NativeCall,
    NativeProgram,
    NativeTensor,
    aligned,
)
from tunegate.errors import NotOfferedError
from tunegate.whole_model.arena import Arena, buffers_of, moved_part, placed
from tunegate.whole_model.block_steps import contiguous
from tunegate.whole_model.faults import faults
from tunegate.whole_model.parts import StagePart, joined
from tunegate.whole_model.stages import most_at_once, stage_numbers

Functions = dict[str, Any]
"""Functions by their symbols."""


def in_one_launch(
    program: NativeProgram, kernels: Mapping[str, Any]
) -> tuple[NativeProgram, Functions]:
    """Returns the program of loop nests, and their functions. `kernels` are those of the calls, by
    symbol. Buffers must not share memory yet: they are placed here, by stages. Raises
    UnsupportedModelError for a kernel that is not a sequence of nests."""
    calls, nests, functions = _taken_apart(program, kernels)
    parts = joined(nests)
    stages = stage_numbers(parts)
    outputs = [each.buffer.span for each in program.outputs]
    arena = placed(buffers_of(parts, outputs), parts, stages, outputs, ALIGNMENT_BYTES)
    parts = tuple(moved_part(part, arena) for part in parts)
    threads = min(program.threads, most_at_once(parts, stages))
    steps = contiguous(parts, stages, threads)
    wrong = faults(parts, steps)
    if wrong:
        raise NotOfferedError(f"its stages are wrong ({wrong[0]})")
    moved = msgspec.structs.replace(
        program,
        outputs=tuple(_moved_tensor(each, arena) for each in program.outputs),
        calls=tuple(
            msgspec.structs.replace(c, buffers=tuple(_moved(b, arena) for b in c.buffers))
            for c in calls
        ),
        arena_bytes=max(1, arena.size_bytes),
        threads=threads,
        pieces=tuple(part.kernels for part in parts),
        steps=steps,
    )
    return moved, functions


def _taken_apart(
    program: NativeProgram, kernels: Mapping[str, Any]
) -> tuple[list[NativeCall], list[StagePart], Functions]:
    found = {symbol: nests_of(function) for symbol, function in kernels.items()}
    functions = {
        _symbol(symbol, n): nest.function
        for symbol, kernel in found.items()
        for n, nest in enumerate(kernel.nests)
    }
    calls: list[NativeCall] = []
    parts: list[StagePart] = []
    end = aligned(program.arena_bytes)
    for call in program.calls:
        kernel = found[call.symbol]
        shared, end = _shared(kernel, end)
        buffers = (*call.buffers, *shared)
        for n, nest in enumerate(kernel.nests):
            part = StagePart(
                kernels=(len(calls),),
                blocks=nest.blocks,
                reads=_spans(buffers, nest.reads),
                writes=_spans(buffers, nest.writes),
            )
            parts.append(part)
            taken = tuple(buffers[each] for each in nest.arguments)
            calls.append(NativeCall(_symbol(call.symbol, n), taken, has_share=nest.blocks > 1))
    return calls, parts, functions


def _shared(kernel: Kernel, end: int) -> tuple[list[NativeBuffer], int]:
    """The buffers between nests, behind the end of the arena, and its new end."""
    found = []
    for each in kernel.shared:
        found.append(native_buffer("arena", end, each.shape, each.dtype))
        end += aligned(max(1, found[-1].size_bytes))
    return found, end


def _spans(buffers: Sequence[NativeBuffer], numbers: Sequence[int]) -> tuple[Any, ...]:
    return tuple(sorted({buffers[each].span for each in numbers}))


def _symbol(symbol: str, nest: int) -> str:
    return f"{symbol}_nest{nest}"


def _moved(buffer: NativeBuffer, arena: Arena) -> NativeBuffer:
    if buffer.place != "arena":
        return buffer
    return msgspec.structs.replace(buffer, at=arena.moved(buffer.at))


def _moved_tensor(tensor: NativeTensor, arena: Arena) -> NativeTensor:
    return msgspec.structs.replace(tensor, buffer=_moved(tensor.buffer, arena))
