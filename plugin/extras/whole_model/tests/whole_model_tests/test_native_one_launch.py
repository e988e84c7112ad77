"""Straight-line code becomes nests in stages, in as little memory as they need."""

from __future__ import annotations

import tvm
from tvm import te

from tunegate_whole_model.native.one_launch import in_one_launch
from tunegate_whole_model.native.program import (
    NativeBuffer,
    NativeCall,
    NativeProgram,
    NativeTensor,
)
from tunegate_whole_model.stages.steps import Barrier

ROWS, COLUMNS = 64, 1024
BYTES = ROWS * COLUMNS * 4


def _doubled() -> tvm.tirx.PrimFunc:
    """A kernel of two nests."""
    x = te.placeholder((ROWS, COLUMNS), name="x")
    once = te.compute(x.shape, lambda i, j: x[i, j] + 1.0, "once")
    return te.create_prim_func([x, te.compute(x.shape, lambda i, j: once[i, j] * 2.0, "y")])


def _program(count: int, threads: int) -> NativeProgram:
    """Returns a program of that many kernels, one after the other."""
    given = NativeBuffer("input", 0, (ROWS, COLUMNS), 2, 32)
    made = [NativeBuffer("arena", n * BYTES, (ROWS, COLUMNS), 2, 32) for n in range(count)]
    return NativeProgram(
        inputs=(NativeTensor("x", "float32", given),),
        outputs=(NativeTensor("y", "float32", made[-1]),),
        calls=tuple(NativeCall("double", pair) for pair in zip([given, *made], made, strict=False)),
        arena_bytes=count * BYTES,
        weights=b"",
        threads=threads,
    )


def test_each_nest_is_a_stage_and_memory_is_used_again() -> None:
    found, functions = in_one_launch(_program(4, threads=2), {"double": _doubled()})
    assert sorted(functions) == ["double_nest0", "double_nest1"]
    assert [call.symbol for call in found.calls] == ["double_nest0", "double_nest1"] * 4
    assert all(call.has_share for call in found.calls)
    assert [sum(isinstance(s, Barrier) for s in steps) for steps in found.steps] == [7, 7]
    assert found.arena_bytes == 2 * BYTES
    assert found.outputs[0].buffer == found.calls[-1].buffers[0]


def test_no_thread_waits_that_has_nothing_to_do() -> None:
    found, _ = in_one_launch(_program(1, threads=200), {"double": _doubled()})
    assert found.threads == len(found.steps) == ROWS
