"""exp, tanh and erf of a CPU as polynomials, in the place of calls to the C library.

LLVM makes one call of `expf` or `erff` for each number, whatever a schedule vectorizes: GELU of 128 x 1024 numbers
takes 1.8 ms that way and 0.07 as vectors (docs/benchmarks.md). Sigmoid and what else TVM expresses by these
comes with them. In float32, wherever TVM lowers a kernel of this process for `llvm`; float16 goes through it, and
float64 stays with the library. Infinities and NaN come out as the library has them; subnormal results are 0.

exp is that of Cephes (`expf.c`: ln 2 in two parts, a polynomial of degree 5); tanh and erf are odd rational
functions of degrees 13/6 and 13/8, as Eigen's `ptanh` and the first `perf` have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import tvm
from tvm import tirx

_LIBRARY_LEVEL = 10
_OURS = _LIBRARY_LEVEL + 1
"""Of two rules for one operator TVM takes the one of the higher level."""

_LARGEST = 88.3762626647950
_SMALLEST = -87.3365447504
_LOG2_E = 1.44269504088896341
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_EXPONENT_BIAS, _MANTISSA_BITS = 127, 23
_EXP = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)

_TANH_IS_ONE = 7.90531110763549805
_TANH_OVER = (
    -2.76076847742355e-16,
    2.00018790482477e-13,
    -8.60467152213735e-11,
    5.12229709037114e-08,
    1.48572235717979e-05,
    6.37261928875436e-04,
    4.89352455891786e-03,
)
_TANH_UNDER = (
    1.19825839466702e-06,
    1.18534705686654e-04,
    2.26843463243900e-03,
    4.89352518554385e-03,
)

_ERF_IS_ONE = 4.0
_ERF_OVER = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
_ERF_UNDER = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)


@cache
def vectorize_elementary_functions() -> None:
    """For every kernel that this process compiles for `llvm` from now on."""
    rules: dict[str, Callable[[Any], Any]] = {
        "exp": _exp,
        "tanh": partial(_odd_rational, one_from=_TANH_IS_ONE, over=_TANH_OVER, under=_TANH_UNDER),
        "erf": partial(_odd_rational, one_from=_ERF_IS_ONE, over=_ERF_OVER, under=_ERF_UNDER),
    }
    for name, rule in rules.items():
        operator = f"tirx.{name}"
        of_tvm = tvm.ir.Op.get(operator).get_attr("llvm.FLowerIntrinsic")
        lowered = partial(_lowered, rule, of_tvm or (lambda call: call))
        tirx.register_intrin_lowering(operator, target="llvm", f=lowered, level=_OURS)


def _lowered(rule: Callable[[Any], Any], of_tvm: Callable[[Any], Any], call: Any) -> Any:
    (x,) = call.args
    scalar, _, lanes = str(x.ty).partition("x")
    if scalar == "float32":
        return _let(x, rule)
    if scalar == "float16":
        wide = x.astype("float32" + (f"x{lanes}" if lanes else ""))
        return _let(wide, rule).astype(str(x.ty))
    return of_tvm(call)


def _exp(x: Any) -> Any:
    """2 to the n by the bits of the exponent, times e to a rest between -ln 2 / 2 and ln 2 / 2."""

    def scaled(near: Any, n: Any) -> Any:
        rest = near - n * _number(_LN2_HIGH) - n * _number(_LN2_LOW)
        return _let(
            rest, lambda r: _power_of_two(n) * (_polynomial(r, _EXP) * r * r + r + _number(1))
        )

    def rounded(near: Any) -> Any:
        whole = tirx.floor(near * _number(_LOG2_E) + _number(0.5))
        return _let(whole, lambda n: scaled(near, n))

    value = _let(_clamped(x, _SMALLEST, _LARGEST), rounded)
    value = tirx.Select(x > _like(x, _LARGEST), _like(x, math.inf), value)
    return tirx.Select(x < _like(x, _SMALLEST), _like(x, 0.0), value)


def _power_of_two(n: Any) -> Any:
    integer = str(n.ty).replace("float", "int")
    biased = n.astype(integer) + tirx.const(_EXPONENT_BIAS, "int32")
    return tirx.reinterpret(str(n.ty), biased << tirx.const(_MANTISSA_BITS, "int32"))


def _odd_rational(x: Any, *, one_from: float, over: Sequence[float], under: Sequence[float]) -> Any:
    def ratio(near: Any) -> Any:
        return _let(
            near * near,
            lambda square: near * _polynomial(square, over) / _polynomial(square, under),
        )

    return _let(_clamped(x, -one_from, one_from), ratio)


def _clamped(x: Any, least: float, most: float) -> Any:
    """NaN stays NaN: LLVM gives the second of two that it cannot compare."""
    return tirx.max(_like(x, least), tirx.min(_like(x, most), x))


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Horner's scheme, the highest power first."""
    first, *others = coefficients
    value = _like(x, first)
    for coefficient in others:
        value = value * x + _number(coefficient)
    return value


def _let(value: Any, body: Callable[[Any], Any]) -> Any:
    """What is used more than once is computed once."""
    name = tirx.Var("t", value.ty)
    return tirx.Let(name, value, body(name))


def _number(value: float) -> Any:
    return tirx.const(value, "float32")


def _like(x: Any, value: float) -> Any:
    """As many of it as `x` has lanes."""
    _, _, lanes = str(x.ty).partition("x")
    return tirx.Broadcast(_number(value), int(lanes)) if lanes else _number(value)
