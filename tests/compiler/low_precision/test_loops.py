from __future__ import annotations

from typing import Any

import pytest
import tvm
from tvm.script.ir_builder import IRBuilder
from tvm.tirx import For
from tvm.tirx.script.builder import ir as T

from tunegate.compiler.low_precision.expressions import loop, whole_buffer


@pytest.mark.parametrize(("threads", "kind"), [(1, 0), (2, 1)])
def test_several_threads_share_the_steps_of_a_loop(threads: int, kind: int) -> None:
    with IRBuilder() as builder, T.prim_func(is_private=True), loop(4, threads) as step:
        T.evaluate(step)
    found = builder.get().body
    assert isinstance(found, For)
    assert (int(found.kind), int(found.extent)) == (kind, 4)


def test_a_buffer_that_is_used_by_address_alone_keeps_its_size() -> None:
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("main")
        result = T.arg("result", T.buffer((1,), "float32"))
        buffer = whole_buffer(999, "float32")
        T.buffer_store(buffer, tvm.tirx.const(1.0, "float32"), [0])
        T.buffer_store(result, buffer[0], [0])
    found = tvm.s_tir.transform.CompactBufferAllocation()(_lowered(builder.get()))
    assert "999" in found.script()


def _lowered(function: Any) -> Any:
    module = tvm.IRModule({"main": function})
    return tvm.s_tir.transform.PlanAndUpdateBufferAllocationLocation()(module)
