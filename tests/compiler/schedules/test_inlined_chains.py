from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import te, topi

from tests.compiler.schedules.test_vector_accumulators import Made, function, outputs
from tunegate.compiler.schedules.default_schedule import with_inlined_chains
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED


def given(*shape: int) -> Any:
    return te.placeholder(shape, "float32", "x")


def blocks(module: Any) -> int:
    schedule = tvm.s_tir.Schedule(module)
    return len(schedule.get_child_blocks(schedule.get_sblock("root")))


def chain() -> Made:
    x = given(8, 64)
    return function(x, topi.nn.relu(topi.tanh(topi.negative(x))))


def test_a_chain_is_one_loop_with_the_same_numbers() -> None:
    module, tensors = chain()
    inlined = with_inlined_chains(module)
    assert (blocks(module), blocks(inlined)) == (3, 1)
    np.testing.assert_allclose(outputs(inlined, tensors), outputs(module, tensors), rtol=1e-6)


def test_what_two_others_read_is_computed_once() -> None:
    x = given(8, 64)
    shared = topi.tanh(x)
    module, _ = function(x, topi.add(topi.nn.relu(shared), topi.negative(shared)))
    assert (blocks(module), blocks(with_inlined_chains(module))) == (4, 2)


def test_what_one_reads_twice_is_computed_once() -> None:
    x = given(8, 64)
    y = topi.tanh(x)
    module, _ = function(x, topi.multiply(y, y))
    assert with_inlined_chains(module) is module


def test_what_is_repeated_for_many_or_summed_up_is_computed_once() -> None:
    x, row = given(8, 64), te.placeholder((1, 64), "float32", "row")
    repeated, _ = function(x, row, topi.add(x, topi.tanh(row)))
    summed, _ = function(x, topi.sum(topi.tanh(x), 1))
    for module in (repeated, summed):
        assert with_inlined_chains(module) is module


def test_what_has_a_schedule_is_left_alone() -> None:
    module, _ = chain()
    scheduled = tvm.IRModule({"main": module["main"].with_attr(IS_SCHEDULED, True)})
    assert with_inlined_chains(scheduled) is scheduled
