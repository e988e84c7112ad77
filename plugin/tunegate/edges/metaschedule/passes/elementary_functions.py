"""Elementary functions of a CPU's kernels in vectors, in the place of calls to the C library.

LLVM makes one call of `expf`, `erff` or `powf` for each number, whatever a schedule vectorizes:
GELU of 128 x 1024 numbers takes 2.2 ms that way and 0.08 in vectors (docs/benchmarks). The rules
hold wherever TVM lowers a kernel of this process for `llvm`; kernels, their keys and their
schedules are what they were. Sigmoid and softmax come with exp. float16 goes through float32;
float64 stays with the library.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import tvm
from tvm import tirx

from tunegate.edges.metaschedule.passes.vector_formulas import erf, exp, let, log, tanh

_LEVEL = 11
"""The level of our lowering rules. TVM takes the rule of the higher level
for an operator; its own have 10."""

_MAX_POWER = 8


@cache
def vectorize_elementary_functions() -> None:
    """Registers the formulas for every kernel that this process compiles for `llvm` from now on."""
    formulas: dict[str, Callable[[Any], Any]] = {"exp": exp, "log": log, "tanh": tanh, "erf": erf}
    for name, formula in formulas.items():
        _register(name, partial(_in_float32, formula))
    _register("pow", _power)


def _register(name: str, rule: Callable[[Any], Any]) -> None:
    """A rule gives None where it does not hold."""
    operator = f"tirx.{name}"
    of_tvm = tvm.ir.Op.get(operator).get_attr("llvm.FLowerIntrinsic")

    def lowered(call: Any) -> Any:
        found = rule(call)
        if found is not None:
            return found
        return of_tvm(call) if of_tvm is not None else call

    tirx.register_intrin_lowering(operator, target="llvm", f=lowered, level=_LEVEL)


def _in_float32(formula: Callable[[Any], Any], call: Any) -> Any:
    (x,) = call.args
    kind = str(x.ty)
    if kind.startswith("float32"):
        return let(x, formula)
    if kind.startswith("float16"):
        return let(x.astype(kind.replace("16", "32", 1)), formula).astype(kind)
    return None


def _power(call: Any) -> Any:
    """A power with a small exponent, whole or half, as products and roots: exporters write squares,
    cubes and roots like this. LLVM knows the square."""
    x, y = call.args
    y = y.value if isinstance(y, tirx.Broadcast) else y
    if not isinstance(y, tirx.FloatImm) or not str(x.ty).startswith(("float32", "float64")):
        return None
    exponent = float(y.value)
    twice = 2 * abs(exponent)
    if not twice.is_integer() or not 0 < twice <= 2 * _MAX_POWER:
        return None
    whole, has_root = divmod(int(twice), 2)
    power = let(x, lambda base: _product([*[base] * whole, *[tirx.sqrt(base)] * has_root]))
    return 1.0 / power if exponent < 0 else power


def _product(factors: list[Any]) -> Any:
    """The product of the factors, multiplied in pairs, so that few
    multiplications wait for another."""
    while len(factors) > 1:
        pairs = zip(factors[::2], factors[1::2], strict=False)
        factors = [a * b for a, b in pairs] + factors[len(factors) // 2 * 2 :]
    return factors[0]
