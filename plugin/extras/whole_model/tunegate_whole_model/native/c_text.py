"""The C file of one model: tables of its tensors, weights, calls and steps, before the code that
reads them: `threads.c`, `runtime.c`, and `calls.c` or `one_launch.c`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sized
from importlib.resources import files
from itertools import accumulate, chain, pairwise

from tunegate_whole_model.native.program import (
    NativeBuffer,
    NativeCall,
    NativeProgram,
    NativeTensor,
    align_up,
)
from tunegate_whole_model.stages.steps import Run

_HEAD = """#include "model.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { int32_t kind, id; } device;
typedef struct { uint8_t code, bits; uint16_t lanes; } type;
typedef struct {
  void* data; device on; int32_t rank; type of; const int64_t *shape, *strides; uint64_t offset;
} tensor;
typedef struct { int32_t type, zero; void* value; } any;
typedef int (*kernel)(void*, const any*, int32_t, any*);
enum place { INPUT, ARENA, WEIGHT };
"""
_KEPT = re.compile(r"[\w ./:;,+=<>()\[\]{}!@#$%^&*|~`'-]", re.ASCII)
"""Characters that stand for themselves in a string of C."""


def header() -> str:
    """Returns `model.h`, the same for every model."""
    return _resource("model.h")


def c_text(program: NativeProgram) -> str:
    """Returns the whole file; the weights are the symbol `weight_bytes` of another object."""
    buffers = [buffer for call in program.calls for buffer in call.buffers]
    copies, end = _input_copies(program)
    return "\n".join(
        (
            _HEAD,
            *_constants(program, len(buffers), end),
            *(f"extern int {s}(void*, const any*, int32_t, any*);" for s in _symbols(program)),
            *_shapes(buffers, "buffer"),
            *_metadata("INPUTS", "input", program.inputs),
            *_metadata("OUTPUTS", "output", program.outputs),
            f"static const int64_t INPUT_COPIES[] = {{{_list(copies)}}};",
            "static const struct { int place; int64_t at; tensor view; } BUFFERS[] = {",
            *(_buffer(buffer, i) for i, buffer in enumerate(buffers)),
            "};",
            "static const struct { int place; int64_t at; } OUTPUT_PLACES[] = {",
            *(f"  {{{t.buffer.place.upper()}, {t.buffer.at}}}," for t in program.outputs),
            "};",
            *_calls(program.calls),
            *(_steps(program) if program.steps else ()),
            _resource("threads.c"),
            _resource("runtime.c"),
            _resource("one_launch.c" if program.steps else "calls.c"),
        )
    )


def _constants(program: NativeProgram, buffers: int, arena_bytes: int) -> Iterable[str]:
    yield "extern const char weight_bytes[];"
    numbers = {
        "INPUT_COUNT": len(program.inputs),
        "OUTPUT_COUNT": len(program.outputs),
        "BUFFER_COUNT": buffers,
        "CALL_COUNT": len(program.calls),
        "MOST_ARGUMENTS": max((len(call.buffers) for call in program.calls), default=1),
        "THREADS": program.threads,
        "ARENA_BYTES": arena_bytes,
        "WEIGHT_BYTES": len(program.weights),
    }
    yield from (f"#define {name} {number}" for name, number in numbers.items())


def _calls(calls: Iterable[NativeCall]) -> Iterable[str]:
    yield "static const struct { kernel kernel; int32_t buffers, count, has_share; } CALLS[] = {"
    begin = 0
    for call in calls:
        yield f"  {{{call.symbol}, {begin}, {len(call.buffers)}, {int(call.has_share)}}},"
        begin += len(call.buffers)
    yield "};"


def _steps(program: NativeProgram) -> Iterable[str]:
    """Yields the work of each thread: the blocks of a part, or `BARRIER`. A part is its calls in
    order."""
    yield "typedef struct { int32_t part; int64_t first, stop; } step;"
    yield "enum { BARRIER = -1 };"
    yield "static const step STEPS[] = {"
    for step in (each for steps in program.steps for each in steps):
        run = (step.part, step.first, step.stop) if isinstance(step, Run) else (-1, 0, 0)
        yield f"  {{{_list(run)}}},"
    yield "};"
    yield f"static const int32_t STEP_BEGINS[] = {{{_list(_begins(program.steps))}}};"
    yield f"static const int32_t PIECE_CALLS[] = {{{_list(chain(*program.pieces))}}};"
    yield "static const struct { int32_t begin, end; } PIECES[] = {"
    yield from (f"  {{{begin}, {end}}}," for begin, end in pairwise(_begins(program.pieces)))
    yield "};"


def _begins(groups: Iterable[Sized]) -> list[int]:
    return [0, *accumulate(map(len, groups))]


def _input_copies(program: NativeProgram) -> tuple[list[int], int]:
    """Returns the offsets behind the arena to which unaligned inputs are copied, and the end."""
    copies, end = [], align_up(program.arena_bytes)
    for tensor in program.inputs:
        copies.append(end)
        end += align_up(max(1, tensor.buffer.size_bytes))
    return copies, end


def _symbols(program: NativeProgram) -> list[str]:
    return sorted({call.symbol for call in program.calls})


def _shapes(buffers: Iterable[NativeBuffer], name: str) -> Iterable[str]:
    for i, buffer in enumerate(buffers):
        strides, step = [], 1
        for extent in reversed(buffer.shape):
            strides.append(step)
            step *= extent
        yield f"static const int64_t {name}_shape_{i}[] = {{{_list(buffer.shape)}}};"
        yield f"static const int64_t {name}_strides_{i}[] = {{{_list(strides[::-1])}}};"


def _metadata(table: str, name: str, tensors: tuple[NativeTensor, ...]) -> Iterable[str]:
    for i, tensor in enumerate(tensors):
        yield f"static const int64_t {name}_shape_{i}[] = {{{_list(tensor.buffer.shape)}}};"
    yield f"static const model_tensor {table}[] = {{"
    for i, tensor in enumerate(tensors):
        text, kind = _literal(tensor.name), _literal(tensor.dtype)
        rank, size = len(tensor.buffer.shape), tensor.buffer.size_bytes
        yield f"  {{{text}, {kind}, {rank}, {name}_shape_{i}, {size}}},"
    yield "};"


def _literal(text: str) -> str:
    """Returns a string of C with these bytes in UTF-8. C knows no halves of a character, as JSON
    writes them, and two question marks may begin an escape."""
    kept = _KEPT.fullmatch
    plain = (
        chr(byte) if kept(chr(byte)) else f"\\{byte:03o}" for byte in text.encode(errors="replace")
    )
    return f'"{"".join(plain)}"'


def _buffer(buffer: NativeBuffer, i: int) -> str:
    view = (
        f"{{NULL, {{1, 0}}, {len(buffer.shape)}, {{{buffer.code}, {buffer.bits}, 1}}, "
        f"buffer_shape_{i}, buffer_strides_{i}, 0}}"
    )
    return f"  {{{buffer.place.upper()}, {buffer.at}, {view}}},"


def _list(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers)) or "0"


def _resource(name: str) -> str:
    return files("tunegate_whole_model.native").joinpath(name).read_text()
