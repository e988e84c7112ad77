"""A model as nests in stages for a persistent kernel, with the place of each buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from tunegate.errors import NotOfferedError, UnsupportedModelError
from tunegate_whole_model.native.program import ALIGNMENT_BYTES, NativeBuffer, NativeProgram
from tunegate_whole_model.nests.nests import Kernel
from tunegate_whole_model.nests.taken_apart import nest_symbol, taken_apart
from tunegate_whole_model.persistent.device_code import DeviceKernel
from tunegate_whole_model.stages.arena import Arena, buffers_of, place_buffers
from tunegate_whole_model.stages.block_steps import strided_steps
from tunegate_whole_model.stages.faults import faults
from tunegate_whole_model.stages.parts import Span, StagePart
from tunegate_whole_model.stages.stage_numbers import stage_numbers


class CodedKernel(NamedTuple):
    """One way to compute a kernel: its nests, and the code of each."""

    kernel: Kernel
    codes: tuple[DeviceKernel, ...]


class WholeModel(NamedTuple):
    """`ways` are by the calls' symbols, and for each in order of preference."""

    program: NativeProgram
    head: str
    ways: Mapping[str, Mapping[str, CodedKernel]]


class PlacedNest(NamedTuple):
    """A nest in the model. `arguments` are C expressions in parameter order, and `buffers` what
    they point to."""

    code: DeviceKernel
    arguments: tuple[str, ...]
    buffers: tuple[NativeBuffer, ...]


class StageProgram(NamedTuple):
    """All nests in model order. The blocks of `parts` are a launch's; `outputs` are the bytes that
    lie where the caller wants them."""

    nests: tuple[PlacedNest, ...]
    parts: tuple[StagePart, ...]
    stages: tuple[int, ...]
    arena_bytes: int
    outputs: tuple[Span, ...]

    @property
    def barriers(self) -> int:
        return max(self.stages, default=0)

    def only(self, first: int, count: int) -> StageProgram:
        """Returns the program of some neighbouring nests, as if they were a model. Its buffers
        share no memory, so that it can run again on its inputs: in the model its results may
        overwrite its inputs, one of which may be an index."""
        parts = self.parts[first : first + count]
        places = _place_buffers(parts, (0,) * len(parts), self.outputs)
        nests = tuple(
            places.nest(each.code, each.buffers) for each in self.nests[first : first + count]
        )
        return StageProgram(nests, parts, stage_numbers(parts), places.size_bytes, self.outputs)


def stage_program(
    program: NativeProgram, ways: Mapping[str, CodedKernel], threads: int
) -> StageProgram:
    """Returns the program. `ways` are the kernels' by the calls' symbols, for blocks of so many
    threads. Buffers must not share memory yet: they are placed here, by stages."""
    apart = taken_apart(program, {symbol: way.kernel for symbol, way in ways.items()})
    codes = {
        nest_symbol(symbol, n): code
        for symbol, way in ways.items()
        for n, code in enumerate(way.codes)
    }
    used = [codes[call.symbol] for call in apart.calls]
    parts = tuple(
        msgspec.structs.replace(part, blocks=launch_blocks(code, threads))
        for part, code in zip(apart.parts, used, strict=True)
    )
    stages = stage_numbers(parts)
    outputs = _outputs(program)
    places = _place_buffers(parts, stages, outputs)
    nests = tuple(
        places.nest(code, tuple(call.buffers[each] for each in code.order))
        for call, code in zip(apart.calls, used, strict=True)
    )
    return StageProgram(nests, parts, stages, places.size_bytes, outputs)


def launch_blocks(code: DeviceKernel, threads: int) -> int:
    """Returns the number of blocks of so many threads that a nest is divided into: its own, or, if
    its threads are independent, as few as hold them all."""
    if code.is_together:
        return code.block_count
    return -(-code.block_count * code.thread_count // threads)


def require_sound(program: StageProgram, grids: Sequence[int]) -> None:
    """Raises NotOfferedError if the steps would hang or race for some number of blocks."""
    for grid in grids:
        wrong = faults(program.parts, strided_steps(program.parts, program.stages, grid))
        if wrong:
            raise NotOfferedError(f"its stages are wrong for {grid} blocks ({wrong[0]})")


def _outputs(program: NativeProgram) -> tuple[Span, ...]:
    """Returns the bytes of each output, which the kernel writes where the caller wants them."""
    spans = tuple(each.buffer.span for each in program.outputs)
    if any(span.place != "arena" for span in spans):
        raise UnsupportedModelError("an output is an input, or a constant")
    if any(one.overlaps(other) for n, one in enumerate(spans) for other in spans[:n]):
        raise UnsupportedModelError("two outputs are one")
    return spans


def _place_buffers(
    parts: Sequence[StagePart], stages: Sequence[int], outputs: tuple[Span, ...]
) -> _Places:
    """Returns places for the buffers of these parts; those of one stage share none."""
    buffers = [b for b in buffers_of(parts, outputs) if not any(map(b.overlaps, outputs))]
    return _Places(place_buffers(buffers, parts, stages, (), ALIGNMENT_BYTES), outputs)


class _Places(NamedTuple):
    arena: Arena
    outputs: tuple[Span, ...]

    @property
    def size_bytes(self) -> int:
        return max(ALIGNMENT_BYTES, self.arena.size_bytes)

    def nest(self, code: DeviceKernel, buffers: tuple[NativeBuffer, ...]) -> PlacedNest:
        return PlacedNest(code, tuple(map(self.expression, buffers)), buffers)

    def expression(self, buffer: NativeBuffer) -> str:
        if buffer.place == "input":
            return f"input_{buffer.at}"
        if buffer.place == "weight":
            return f"weights + {buffer.at}"
        for n, output in enumerate(self.outputs):
            if output.overlaps(buffer.span):
                return f"output_{n} + {buffer.at - output.start}"
        return f"arena + {self.arena.place(buffer.at)}"
