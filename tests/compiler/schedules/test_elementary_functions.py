from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tvm
from tvm import te

from tunegate.compiler.schedules.vector_functions import vectorize_elementary_functions

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
    error = np.abs(computed(name, x, in_vectors=True) - wanted)
    assert (error <= 4e-7 * np.abs(wanted)).all()


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
    kernel = build(
        lambda x: te.power(x, exponent_of(exponent, dtype)), dtype, in_vectors=in_vectors
    )
    assert "pow" not in kernel.inspect_source("asm")
    x = np.abs(spread(dtype)) + 1e-3
    x = (x if exponent % 1 else x * np.where(np.arange(x.size) % 2, 1, -1)).astype(dtype)
    np.testing.assert_allclose(run(kernel, x), x.astype("float64") ** exponent, rtol=most)


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
