"""A kernel is its nests, one after the other, and each in shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te

from tunegate.errors import UnsupportedModelError
from tunegate_whole_model.nests.nests import Kernel, nests_of

SIZE = 300
TARGET = "llvm"


def _product_and_relu() -> Any:
    x, w = (te.placeholder((SIZE, 64), name=n) for n in "xw")
    k = te.reduce_axis((0, 64), "k")
    made = te.compute((SIZE, SIZE), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), "made")
    y = te.compute((SIZE, SIZE), lambda i, j: te.max(made[i, j], 0.0), "y")
    return te.create_prim_func([x, w, y])


def test_the_shares_of_all_nests_compute_what_the_kernel_does() -> None:
    function = _product_and_relu()
    kernel = nests_of(function)
    assert [nest.blocks for nest in kernel.nests] == [SIZE, SIZE]
    assert [(nest.reads, nest.writes) for nest in kernel.nests] == [((0, 1), (3,)), ((3,), (2,))]
    x, w = (np.random.default_rng(n).random((SIZE, 64), np.float32) - 0.5 for n in (1, 2))
    expected = np.zeros((SIZE, SIZE), np.float32)
    whole = tvm.runtime.tensor(expected)
    _built(function)(*map(tvm.runtime.tensor, (x, w)), whole)
    shares = ((0, 100), (100, 299), (299, 300))
    assert _run(kernel, [x, w, expected], shares) == whole.numpy().tobytes()


def _run(kernel: Kernel, given: list[Any], shares: tuple[tuple[int, int], ...]) -> bytes:
    between = [np.zeros([int(n) for n in each.shape], np.float32) for each in kernel.shared]
    buffers = [tvm.runtime.tensor(each) for each in (*given, *between)]
    for nest in kernel.nests:
        function = _built(nest.function)
        for share in shares:
            function(*(buffers[n] for n in nest.arguments), *share)
    return bytes(buffers[2].numpy().tobytes())


def _built(function: Any) -> Any:
    module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    return tvm.tirx.build(module, target=tvm.target.Target(TARGET), pipeline="default")["main"]


def test_a_nest_that_is_done_before_others_have_begun_stays_whole() -> None:
    x = te.placeholder((30, 4), name="x")
    y = te.compute((30, 4), lambda i, j: x[i, j] + 1.0, "y")
    (nest,) = nests_of(te.create_prim_func([x, y])).nests
    assert (nest.blocks, nest.arguments) == (1, (0, 1))


def test_a_sum_over_the_outermost_loop_is_not_taken_apart() -> None:
    x = te.placeholder((SIZE, SIZE), name="x")
    k = te.reduce_axis((0, SIZE), "k")
    y = te.compute((SIZE,), lambda i: te.sum(x[k, i], axis=k), "y")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([x, y]))
    schedule.reorder(*reversed(schedule.get_loops(schedule.get_sblock("y"))))
    (nest,) = nests_of(schedule.mod["main"]).nests
    assert nest.blocks == 1


def test_loops_of_one_iteration_hide_no_other() -> None:
    x = te.placeholder((1, 1, SIZE, SIZE), name="x")
    y = te.compute(x.shape, lambda a, b, i, j: x[a, b, i, j] + 1.0, "y")
    (nest,) = nests_of(te.create_prim_func([x, y])).nests
    assert nest.blocks == SIZE


def test_a_loop_of_one_iteration_over_several_stays() -> None:
    x = te.placeholder((1, SIZE, SIZE), name="x")
    once = te.compute(x.shape, lambda a, i, j: x[a, i, j] + 1.0, "once")
    y = te.compute(x.shape, lambda a, i, j: once[a, i, j] * 2.0, "y")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([x, y]))
    outer, *_ = schedule.get_loops(schedule.get_sblock("y"))
    schedule.compute_at(schedule.get_sblock("once"), outer, preserve_unit_loops=True)
    (nest,) = nests_of(schedule.mod["main"]).nests
    assert nest.blocks == 1


def test_what_is_no_sequence_of_nests_is_refused() -> None:
    y = tvm.tirx.decl_buffer([1], "float32", "y")
    store = tvm.tirx.BufferStore(y, tvm.tirx.const(0.0, "float32"), [0])
    with pytest.raises(UnsupportedModelError, match="no sequence of loop nests"):
        nests_of(tvm.tirx.PrimFunc([y], store))
