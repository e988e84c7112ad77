"""Straight-line code as one launch: every thread runs the whole model, with barriers in between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tunegate.errors import NotOfferedError
from tunegate_whole_model.native.program import (
    ALIGNMENT_BYTES,
    NativeBuffer,
    NativeProgram,
    NativeTensor,
)
from tunegate_whole_model.nests.nests import nests_of
from tunegate_whole_model.nests.taken_apart import nest_symbol, taken_apart
from tunegate_whole_model.stages.arena import Arena, buffers_of, moved_part, place_buffers
from tunegate_whole_model.stages.block_steps import contiguous
from tunegate_whole_model.stages.faults import faults
from tunegate_whole_model.stages.parts import join_neighbours
from tunegate_whole_model.stages.stage_numbers import most_at_once, stage_numbers

Functions = dict[str, Any]
"""Functions by their symbols."""


def in_one_launch(
    program: NativeProgram, kernels: Mapping[str, Any]
) -> tuple[NativeProgram, Functions]:
    """Returns the program of loop nests, and their functions. `kernels` are the calls' kernels, by
    symbol. Buffers must not share memory yet: they are placed here, by stages. Raises
    UnsupportedModelError for a kernel that is not a sequence of nests."""
    # The kernels, taken apart into loop nests. Nests that need nothing of each other are of one
    # stage, and run side by side.
    apart = {symbol: nests_of(function) for symbol, function in kernels.items()}
    calls, nests = taken_apart(program, apart)
    parts = join_neighbours(nests)
    stages = stage_numbers(parts)
    # Buffers share memory where no stage needs both. Each thread has its steps, in the order of the
    # stages; they are checked before anything is made of them.
    outputs = [each.buffer.span for each in program.outputs]
    arena = place_buffers(buffers_of(parts, outputs), parts, stages, outputs, ALIGNMENT_BYTES)
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
            msgspec.structs.replace(c, buffers=tuple(_move(b, arena) for b in c.buffers))
            for c in calls
        ),
        arena_bytes=max(1, arena.size_bytes),
        threads=threads,
        pieces=tuple(part.kernels for part in parts),
        steps=steps,
    )
    return moved, {
        nest_symbol(symbol, n): nest.function
        for symbol, kernel in apart.items()
        for n, nest in enumerate(kernel.nests)
    }


def _move(buffer: NativeBuffer, arena: Arena) -> NativeBuffer:
    if buffer.place != "arena":
        return buffer
    return msgspec.structs.replace(buffer, at=arena.place(buffer.at))


def _moved_tensor(tensor: NativeTensor, arena: Arena) -> NativeTensor:
    return msgspec.structs.replace(tensor, buffer=_move(tensor.buffer, arena))
