from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, topi

from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED, share_out, with_parallel_loops
from tunegate.compiler.targets import threads_of

ONE, TWO, MANY = (tvm.target.Target({"kind": "llvm", "num-cores": n}) for n in (1, 2, 16))


def module_of(*tensors: Any) -> Any:
    main = te.create_prim_func(list(tensors)).with_attr("global_symbol", "main")
    return tvm.IRModule({"main": main})


def activation(rows: int, columns: int = 512) -> Any:
    x = te.placeholder((rows, columns), "float32", "x")
    return module_of(x, topi.nn.relu(x))


def softmax() -> Any:
    x = te.placeholder((64, 1024), "float32", "x")
    return module_of(x, topi.nn.softmax(x))


def shares(module: Any) -> list[int]:
    """The iterations of its parallel loops."""
    lines = str(module).splitlines()
    return [
        int(each.partition("T.parallel(")[2].partition(")")[0])
        for each in lines
        if "T.parallel(" in each
    ]


def test_a_target_says_how_many_threads_it_has() -> None:
    assert [threads_of(each) for each in (ONE, TWO, MANY)] == [1, 2, 16]
    assert threads_of(tvm.target.Target("llvm")) == 1


def test_a_large_nest_is_shared_out_and_a_small_one_is_not() -> None:
    small = activation(8)
    assert shares(with_parallel_loops(activation(512), TWO)) == [512]
    assert with_parallel_loops(small, TWO) is small


def test_one_thread_has_nothing_to_share() -> None:
    module = activation(512)
    assert with_parallel_loops(module, ONE) is module


def test_as_many_loops_are_shared_out_as_the_threads_need() -> None:
    x = te.placeholder((1, 4, 32, 2048), "float32", "x")
    module = module_of(x, topi.nn.relu(x))
    assert shares(with_parallel_loops(module, TWO)) == [128]
    assert shares(with_parallel_loops(module, MANY)) == [128]


@pytest.mark.parametrize("module", [activation(512), softmax()])
def test_the_numbers_are_the_same(module: Any) -> None:
    shared = with_parallel_loops(module, TWO)
    assert shares(shared)
    np.testing.assert_array_equal(computed(shared), computed(module))


def computed(module: Any) -> np.ndarray:
    x, y = module["main"].params
    size = [int(n) for n in x.shape]
    given = tvm.runtime.tensor(np.random.default_rng(1).normal(size=size).astype("float32"))
    found = tvm.runtime.tensor(np.zeros([int(n) for n in y.shape], "float32"))
    tvm.compile(module, TWO)(given, found)
    return np.asarray(found.numpy())


def test_a_sum_is_never_taken_apart() -> None:
    x = te.placeholder((1_000_000,), "float32", "x")
    module = module_of(x, topi.sum(x))
    assert with_parallel_loops(module, TWO) is module


def test_steps_of_many_numbers_count_as_many() -> None:
    def is_shared_out(lanes: int) -> bool:
        schedule = tvm.s_tir.Schedule(activation(8))
        (block,) = schedule.get_child_blocks(schedule.get_sblock("root"))
        return share_out(schedule, block, 2, lanes=lanes)

    assert not is_shared_out(1)
    assert is_shared_out(16)


def test_what_has_a_schedule_is_left_alone() -> None:
    main = activation(512)["main"].with_attr(IS_SCHEDULED, True)
    scheduled = tvm.IRModule({"main": main})
    assert with_parallel_loops(scheduled, TWO) is scheduled
