from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st
from tvm import te, topi

from tunegate.compiler.schedules.default_schedule import with_vector_accumulators
from tunegate.compiler.schedules.product_tiles import register_tile
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate.compiler.targets import vector_registers
from tunegate.tune.prior import VectorRegisters


@pytest.mark.parametrize(
    ("cpu", "lanes", "count"),
    [("znver5", 16, 32), ("skylake-avx512", 16, 32), ("haswell", 8, 16), ("x86-64", 4, 16)],
)
def test_they_are_those_of_the_cpu_that_code_is_for(cpu: str, lanes: int, count: int) -> None:
    target = tvm.target.Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": cpu})
    assert vector_registers(target) == VectorRegisters(lanes, count)


def test_other_architectures_have_at_least_those_of_128_bits() -> None:
    arm = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-n1"}
    assert vector_registers(tvm.target.Target(arm)) == VectorRegisters(4, 32)


def test_a_gpu_has_none_and_gets_the_default() -> None:
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_80"})
    assert vector_registers(target) == VectorRegisters()


AVX512, AVX2, NEON = VectorRegisters(16, 32), VectorRegisters(8, 16), VectorRegisters(4, 32)


def test_sums_fill_the_registers_and_leave_some_for_what_is_multiplied() -> None:
    assert register_tile([1, 56, 48, 64], [0, 1, 2], AVX2) == (2, 6, 16)
    assert register_tile([1, 56, 48, 64], [0, 1, 2], AVX512) == (2, 6, 64)


def test_where_a_width_has_no_such_divisor_fewer_channels_are_taken() -> None:
    assert register_tile([1, 7, 7, 512], [2], AVX2) == (2, 7, 8)


def test_a_prime_width_leaves_it_to_the_height() -> None:
    assert register_tile([1, 6, 61, 64], [1, 2], AVX2) == (1, 6, 16)


def test_channels_that_fill_no_register_have_no_tile() -> None:
    assert register_tile([1, 56, 56, 12], [2], AVX2) is None


@given(
    st.lists(st.integers(1, 200), min_size=2, max_size=4),
    st.sampled_from([AVX512, AVX2, NEON]),
)
def test_it_divides_what_it_tiles_and_its_sums_fit(
    extents: list[int], has: VectorRegisters
) -> None:
    axes = list(range(len(extents) - 1))
    tile = register_tile(extents, axes, has)
    assert (tile is None) == (extents[-1] % has.lanes != 0)
    if tile is not None:
        assert tile.axis in axes
        assert extents[tile.axis] % tile.columns == extents[-1] % tile.lanes == 0
        assert tile.lanes % has.lanes == 0
        assert tile.columns * tile.lanes // has.lanes < has.count


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
