from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, topi

from tunegate.compiler.schedules.default_schedule import with_vector_accumulators
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED

Made = tuple[Any, list[Any]]


def product(rows: int, inner: int, columns: int, dtype: str = "float32") -> Made:
    x, w = te.placeholder((rows, inner), dtype, "x"), te.placeholder((inner, columns), dtype, "w")
    r = te.reduce_axis((0, inner), "r")
    y = te.compute((rows, columns), lambda i, j: te.sum(x[i, r] * w[r, j], r), "y")
    return function(x, w, y)


def convolution(channels: int, out: int) -> Made:
    x = te.placeholder((1, 6, 6, channels), "float32", "x")
    w = te.placeholder((3, 3, channels, out), "float32", "w")
    y = topi.nn.conv2d(x, w, 1, 1, 1, data_layout="NHWC", kernel_layout="HWIO")
    return function(x, w, topi.nn.relu(y))


def rows_of(x: Any, kind: str) -> Made:
    return function(x, {"sum": topi.sum, "max": topi.max, "argmax": topi.argmax}[kind](x, 1))


def function(*tensors: Any) -> Made:
    main = te.create_prim_func(list(tensors)).with_attr("global_symbol", "main")
    return tvm.IRModule({"main": main}), list(tensors)


def outputs(module: Any, tensors: list[Any]) -> Any:
    random = np.random.default_rng(1)
    arrays = [
        (10 * random.standard_normal([int(n) for n in t.shape])).astype(str(t.dtype))
        for t in tensors
    ]
    values = [tvm.runtime.tensor(array) for array in arrays]
    tvm.compile(module, "llvm")["main"](*values)
    return values[-1].numpy()


@pytest.mark.parametrize(
    "made",
    [
        product(3, 40, 64),
        product(1, 17, 30),
        product(4, 32, 16, "int32"),
        convolution(8, 24),
        rows_of(te.placeholder((4, 20, 32), "float32", "x"), "sum"),
        rows_of(te.placeholder((4, 20, 32), "float32", "x"), "max"),
    ],
)
def test_neighbours_are_summed_up_together_to_the_same_bits(made: Made) -> None:
    module, tensors = made
    changed = with_vector_accumulators(module)
    assert "vectorized" in str(changed)
    np.testing.assert_array_equal(outputs(changed, tensors), outputs(module, tensors))


@pytest.mark.parametrize(
    "made",
    [
        product(8, 40, 3),
        product(8, 2, 64),
        product(8, 40, 67),
        product(8, 40, 64, "float16"),
        rows_of(te.placeholder((64, 512), "float32", "x"), "sum"),
        rows_of(te.placeholder((4, 20, 32), "float32", "x"), "argmax"),
        function(x := te.placeholder((8, 64), "float32", "x"), topi.nn.relu(x)),
    ],
    ids=["few", "short sums", "prime", "halves", "rows", "two results", "no sum"],
)
def test_what_has_no_neighbours_that_pay_stays_as_it_is(made: Made) -> None:
    module, _ = made
    assert with_vector_accumulators(module) is module


def test_what_has_a_schedule_is_left_alone() -> None:
    module, _ = product(3, 40, 64)
    scheduled = tvm.IRModule({"main": module["main"].with_attr(IS_SCHEDULED, True)})
    assert with_vector_accumulators(scheduled) is scheduled


def test_sums_are_shared_out_to_threads() -> None:
    module, tensors = product(32, 64, 256)
    shared = with_vector_accumulators(module, threads=2)
    assert "T.parallel" in str(shared)
    np.testing.assert_array_equal(outputs(shared, tensors), outputs(module, tensors))
