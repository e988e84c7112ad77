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

from tunegate.edges.metaschedule.elementary_functions import vectorize_elementary_functions

TARGET = tvm.target.Target({"kind": "llvm", "mcpu": "haswell"})
COUNT, LANES = 4096, 16

Array = npt.NDArray[Any]

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
    "exp": (te.exp, np.exp),
    "tanh": (te.tanh, np.tanh),
    "erf": (te.erf, np.vectorize(math.erf)),
    "sigmoid": (te.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
}

vectorize_elementary_functions()


@cache
def compiled(name: str, dtype: str, *, in_vectors: bool) -> Any:
    function, _ = FUNCTIONS[name]
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
    padded = np.zeros(COUNT, x.dtype)
    padded[: x.size] = x
    out = tvm.runtime.empty((COUNT,), str(x.dtype))
    compiled(name, str(x.dtype), in_vectors=in_vectors)["main"](tvm.runtime.tensor(padded), out)
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
    ],
)
def test_infinities_and_nan_are_those_of_the_library(
    name: str, wanted: list[float], *, in_vectors: bool
) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, 1000.0, -1000.0], "float32")
    found = computed(name, x, in_vectors=in_vectors)
    np.testing.assert_allclose(found, np.array(wanted, "float32"), rtol=0, atol=4e-7)


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
