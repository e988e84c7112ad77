import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st
from tvm import te, topi

from tunegate.compiler.schedules.default_schedule import with_vector_accumulators
from tunegate.compiler.schedules.product_tiles import register_tile
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate.compiler.schedules.vector_functions import vectorize_elementary_functions
from tunegate.compiler.targets import vector_registers
from tunegate.tune.prior import VectorRegisters

TARGET = tvm.target.Target({"kind": "llvm", "mcpu": "haswell"})
COUNT, LANES = 4096, 16

Array = npt.NDArray[Any]

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
    "exp": (te.exp, np.exp),
    "tanh": (te.tanh, np.tanh),
    "erf": (te.erf, np.vectorize(math.erf)),
    "sigmoid": (te.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "log": (lambda x: te.log(te.abs(x)), lambda x: np.log(np.abs(x))),
}
POWERS = (2.0, 3.0, 4.0, 7.0, 0.5, 1.5, -0.5, -1.0, -3.0)

vectorize_elementary_functions()


@cache
def compiled(name: str, dtype: str, *, in_vectors: bool) -> Any:
    return build(FUNCTIONS[name][0], dtype, in_vectors=in_vectors)


def build(function: Callable[[Any], Any], dtype: str, *, in_vectors: bool) -> Any:
    x = te.placeholder((COUNT,), dtype, "x")
    y = te.compute((COUNT,), lambda i: function(x[i]), "y")
    main = te.create_prim_func([x, y]).with_attr("global_symbol", "main")
    if in_vectors:
        schedule = tvm.s_tir.Schedule(main)
        (loop,) = schedule.get_loops(schedule.get_sblock("y"))
        _, inner = schedule.split(loop, [None, LANES])
        schedule.vectorize(inner)
        main = schedule.mod["main"]
    return tvm.driver.build(tvm.IRModule({"main": main}), target=TARGET)


def computed(name: str, x: Array, *, in_vectors: bool) -> Array:
    return run(compiled(name, str(x.dtype), in_vectors=in_vectors), x)


def run(kernel: Any, x: Array) -> Array:
    padded = np.ones(COUNT, x.dtype)
    padded[: x.size] = x
    out = tvm.runtime.empty((COUNT,), str(x.dtype))
    kernel["main"](tvm.runtime.tensor(padded), out)
    found: Array = out.numpy()[: x.size]
    return found


def spread(dtype: str) -> Array:
    rng = np.random.default_rng(0)
    near = rng.uniform(-1, 1, COUNT // 4)
    tiny = near * 10.0 ** rng.uniform(-7, -1, COUNT // 4)
    return np.concatenate([rng.uniform(-10, 10, COUNT // 2), near, tiny]).astype(dtype)


@pytest.mark.parametrize("in_vectors", [False, True])
@pytest.mark.parametrize(("dtype", "most"), [("float32", 4e-7), ("float64", 4e-16)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_they_are_as_exact_as_the_type(
    name: str, dtype: str, most: float, *, in_vectors: bool
) -> None:
    x = spread(dtype)
    wanted = FUNCTIONS[name][1](x.astype("float64"))
    error = np.abs(computed(name, x, in_vectors=in_vectors) - wanted)
    assert (error <= most * np.maximum(1.0, np.abs(wanted))).all()


@pytest.mark.parametrize("in_vectors", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_half_precision_is_rounded_once(name: str, *, in_vectors: bool) -> None:
    x = spread("float16")
    x = x[x != 0]
    wanted = FUNCTIONS[name][1](x.astype("float64"))
    error = np.abs(computed(name, x, in_vectors=in_vectors).astype("float64") - wanted)
    assert (error <= 1e-3 * np.maximum(1.0, np.abs(wanted))).all()


@pytest.mark.parametrize("name", ["exp", "tanh", "erf"])
def test_small_results_keep_their_digits(name: str) -> None:
    x = spread("float32")
    wanted = FUNCTIONS[name][1](x.astype("float64"))
    assert (np.abs(computed(name, x, in_vectors=True) - wanted) <= 4e-7 * np.abs(wanted)).all()


@pytest.mark.parametrize("in_vectors", [False, True])
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("exp", [np.nan, np.inf, 0.0, 1.0, np.inf, 0.0]),
        ("tanh", [np.nan, 1.0, -1.0, 0.0, 1.0, -1.0]),
        ("erf", [np.nan, 1.0, -1.0, 0.0, 1.0, -1.0]),
        ("sigmoid", [np.nan, 1.0, 0.0, 0.5, 1.0, 0.0]),
        ("log", [np.nan, np.inf, np.inf, -np.inf, math.log(1000), math.log(1000)]),
    ],
)
def test_infinities_and_nan_are_those_of_the_library(
    name: str, wanted: list[float], *, in_vectors: bool
) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, 1000.0, -1000.0], "float32")
    found = computed(name, x, in_vectors=in_vectors)
    np.testing.assert_allclose(found, np.array(wanted, "float32"), rtol=0, atol=4e-7)


def test_a_negative_number_has_no_logarithm() -> None:
    kernel = build(te.log, "float32", in_vectors=True)
    x = np.array([-1.0, -np.inf, -1e-30, -0.0], "float32")
    np.testing.assert_array_equal(run(kernel, x), np.array([np.nan, np.nan, np.nan, -np.inf]))


@pytest.mark.parametrize("in_vectors", [False, True])
@pytest.mark.parametrize(("dtype", "most"), [("float32", 1e-6), ("float64", 1e-15)])
@pytest.mark.parametrize("exponent", POWERS)
def test_small_powers_are_products(
    exponent: float, dtype: str, most: float, *, in_vectors: bool
) -> None:
    built = build(lambda x: te.power(x, exponent_of(exponent, dtype)), dtype, in_vectors=in_vectors)
    assert "pow" not in built.inspect_source("asm")
    x = np.abs(spread(dtype)) + 1e-3
    x = (x if exponent % 1 else x * np.where(np.arange(x.size) % 2, 1, -1)).astype(dtype)
    np.testing.assert_allclose(run(built, x), x.astype("float64") ** exponent, rtol=most)


def test_other_powers_stay_with_the_library() -> None:
    kernel = build(lambda x: te.power(x, exponent_of(2.2, "float32")), "float32", in_vectors=False)
    assert "powf" in kernel.inspect_source("asm")
    x = np.abs(spread("float32"))
    np.testing.assert_allclose(run(kernel, x), x.astype("float64") ** np.float32(2.2), rtol=1e-6)


def exponent_of(value: float, dtype: str) -> Any:
    return tvm.tirx.const(value, dtype)


@pytest.mark.parametrize("x", [88.37, 88.0, -87.3, -86.0])
def test_exp_holds_to_the_ends_of_its_range(x: float) -> None:
    (found,) = computed("exp", np.array([x], "float32"), in_vectors=False)
    assert found == pytest.approx(math.exp(np.float32(x)), rel=2e-7)


@pytest.mark.parametrize("in_vectors", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_number_costs_a_call(name: str, *, in_vectors: bool) -> None:
    assembly = compiled(name, "float32", in_vectors=in_vectors).inspect_source("asm")
    assert "expf" not in assembly
    assert "erff" not in assembly
    assert "tanhf" not in assembly
    assert "logf" not in assembly


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


def test_channels_that_fill_no_register_have_no_tile() -> None:
    assert register_tile([1, 56, 56, 12], [2], AVX2) is None


@given(st.lists(st.integers(1, 200), min_size=2, max_size=4), st.sampled_from([AVX512, AVX2, NEON]))
def test_it_divides_what_it_tiles_and_sums_fit(extents: list[int], has: VectorRegisters) -> None:
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
