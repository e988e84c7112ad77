"""Elementary functions of CPU kernels in vectors, instead of calls to the C library.

LLVM calls `expf`, `erff` or `powf` once per number, whatever a schedule vectorizes: GELU of 128 x
1024 numbers takes 2.2 ms that way and 0.08 ms in vectors (docs/benchmarks). The rules apply
wherever this process lowers a kernel for `llvm`; kernels, their keys and their schedules do not
change. Sigmoid and softmax use exp. float16 goes through float32; float64 stays with the library.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import Expr

_LEVEL = 11
"""The level of our lowering rules. TVM takes an operator's rule of the highest level; its own have
10."""

_MAX_POWER = 8
_SIGMOID = "tirx.sigmoid"
_PARTS = ("a", "b", "condition", "true_value", "false_value", "value")
"""The fields of an expression node that hold other expressions, beside a call's arguments."""


@cache
def vectorize_elementary_functions() -> None:
    """Registers the formulas for every kernel that this process compiles for `llvm` from now on."""
    for name, formula in _formulas().items():
        _register(name, partial(_in_float32, formula))
    _register("pow", _power)


def _formulas() -> dict[str, Callable[[Any], Any]]:
    return {"exp": exp, "log": log, "tanh": tanh, "erf": erf}


SELECT = "select"
_OTHERS = {"tirx.tan": 40, "tirx.atanh": 400, "tirx.pow": 3, SELECT: 10}
"""Operators whose other formulas name their argument twice and more, and choices, in which the
compiler tries to prove each condition from those around it: with these, as many are in one
expression as compile in a second."""


@cache
def copies_of_argument(operator: str) -> int:
    """Returns how often an operator's formula contains its argument once every `let` is expanded,
    as LLVM's code generator does to simplify it; 1 without a formula."""
    name = "exp" if operator == _SIGMOID else operator.removeprefix("tirx.")
    formula = _formulas().get(name)
    if formula is None:
        return _OTHERS.get(operator, 1)
    argument = tirx.Var("x", "float32")
    return _uses(formula(argument), {argument: 1})


def _uses(expression: Any, of_variables: Mapping[Any, int]) -> int:
    """Returns how often an expression contains the counted variables; a bound variable counts as
    its value."""
    if isinstance(expression, tirx.Var):
        return of_variables.get(expression, 0)
    if isinstance(expression, tirx.Let):
        bound = _uses(expression.value, of_variables)
        return _uses(expression.body, {**of_variables, expression.var: bound})
    return sum(_uses(part, of_variables) for part in parts_of(expression))


def parts_of(expression: Any) -> list[Any]:
    """Returns the direct subexpressions."""
    parts = [getattr(expression, name, None) for name in _PARTS]
    return [each for each in (*parts, *getattr(expression, "args", ())) if isinstance(each, Expr)]


def _register(name: str, rule: Callable[[Any], Any]) -> None:
    """Registers a lowering rule, which returns None where it does not apply."""
    operator = f"tirx.{name}"
    of_tvm = tvm.ir.Op.get(operator).get_attr("llvm.FLowerIntrinsic")

    def lower_call(call: Any) -> Any:
        replacement = rule(call)
        if replacement is not None:
            return replacement
        return of_tvm(call) if of_tvm is not None else call

    tirx.register_intrin_lowering(operator, target="llvm", f=lower_call, level=_LEVEL)


def _in_float32(formula: Callable[[Any], Any], call: Any) -> Any:
    (x,) = call.args
    kind = str(x.ty)
    if kind.startswith("float32"):
        return bind_once(x, formula)
    if kind.startswith("float16"):
        return bind_once(x.astype(kind.replace("16", "32", 1)), formula).astype(kind)
    return None


def _power(call: Any) -> Any:
    """Lowers a power with a small whole or half exponent to products and roots: exporters write
    squares, cubes and roots this way. LLVM knows the square."""
    x, y = call.args
    y = y.value if isinstance(y, tirx.Broadcast) else y
    if not isinstance(y, tirx.FloatImm) or not str(x.ty).startswith(("float32", "float64")):
        return None
    exponent = float(y.value)
    twice = 2 * abs(exponent)
    if not twice.is_integer() or not 0 < twice <= 2 * _MAX_POWER:
        return None
    whole, has_root = divmod(int(twice), 2)
    base = _without_sign_at_limits(x) if has_root else x
    power = bind_once(base, lambda b: _product([*[b] * whole, *[tirx.sqrt(b)] * has_root]))
    return 1.0 / power if exponent < 0 else power


def _without_sign_at_limits(x: Any) -> Any:
    """Returns 0 for -0 and infinity for minus infinity, which have no roots of their own: their
    powers are those."""
    dtype, _, lanes = str(x.ty).partition("x")
    zero, most, least = (
        tirx.Broadcast(number, int(lanes)) if lanes else number
        for number in (tirx.const(each, dtype) for each in (0.0, math.inf, -math.inf))
    )
    return bind_once(x, lambda b: tirx.Select(b == zero, zero, tirx.Select(b == least, most, b)))


def _product(factors: list[Any]) -> Any:
    """Returns the product of the factors, in pairs, so that few multiplications wait for
    another."""
    while len(factors) > 1:
        pairs = zip(factors[::2], factors[1::2], strict=False)
        factors = [a * b for a, b in pairs] + factors[len(factors) // 2 * 2 :]
    return factors[0]


# Formulas for exp, log, tanh and erf of float32 that LLVM can keep in vectors. They map a TVM
# expression of one number or several lanes to another. Infinities and NaN come out as in the C
# library; subnormal numbers count as 0. exp and log are those of Cephes (`expf.c`, `logf.c`: ln 2
# in two parts, polynomials of degree 5 and 8); tanh and erf are odd rational functions of degrees
# 13/6 and 13/8, with the coefficients of Eigen's `ptanh` and of its `erf` before version 3.5.

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

_SQRT_HALF = 0.707106781186547524
_MIN_NORMAL = 1.17549435e-38
_MAX_FLOAT = 3.4028234663852886e38
_MANTISSA, _MANTISSA_OF_HALF = 0x007FFFFF, 0x3F000000
_LOG = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
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


def exp(x: Any) -> Any:
    """Returns 2^n, by the bits of the exponent, times e^r for a rest r between -ln 2 / 2 and ln 2 /
    2."""

    def scale_by_power(near: Any, n: Any) -> Any:
        rest = near - n * _number(_LN2_HIGH) - n * _number(_LN2_LOW)
        return bind_once(
            rest, lambda r: _power_of_two(n) * (_polynomial(r, _EXP) * r * r + r + _number(1))
        )

    def round_exponent(near: Any) -> Any:
        whole = tirx.floor(near * _number(_LOG2_E) + _number(0.5))
        return bind_once(whole, lambda n: scale_by_power(near, n))

    value = bind_once(_clamp(x, _SMALLEST, _LARGEST), round_exponent)
    value = tirx.Select(x > _like(x, _LARGEST), _like(x, math.inf), value)
    return tirx.Select(x < _like(x, _SMALLEST), _like(x, 0.0), value)


def _power_of_two(n: Any) -> Any:
    exponent = n.astype(_integer(n)) + _int32(_EXPONENT_BIAS)
    return tirx.reinterpret(str(n.ty), exponent << _int32(_MANTISSA_BITS))


def log(x: Any) -> Any:
    """Returns the natural logarithm: that of the mantissa, scaled to between sqrt(1/2) and sqrt(2),
    plus ln 2 times the exponent."""
    return bind_once(tirx.max(_like(x, _MIN_NORMAL), x), lambda normal: _log_of_normal(x, normal))


def _log_of_normal(x: Any, normal: Any) -> Any:
    bits = tirx.reinterpret(_integer(x), normal)
    mantissa = tirx.reinterpret(str(x.ty), (bits & _int32(_MANTISSA)) | _int32(_MANTISSA_OF_HALF))
    exponent = ((bits >> _int32(_MANTISSA_BITS)) - _int32(_EXPONENT_BIAS - 1)).astype(str(x.ty))

    def near_one(m: Any, n: Any) -> Any:
        """Normalizes a mantissa from 1/2 to 1: below sqrt(1/2) it is doubled, and the exponent
        reduced."""
        is_small = m < _like(m, _SQRT_HALF)
        rest = tirx.Select(is_small, m + m, m) - _number(1)
        doubled = tirx.Select(is_small, n - _number(1), n)
        return bind_once(rest, lambda r: bind_once(doubled, lambda e: _log_series(r, e)))

    value = bind_once(mantissa, lambda m: bind_once(exponent, lambda n: near_one(m, n)))
    value = tirx.Select(x < _like(x, _MIN_NORMAL), _like(x, -math.inf), value)
    value = tirx.Select(x < _like(x, 0.0), _like(x, math.nan), value)
    return tirx.Select(x <= _like(x, _MAX_FLOAT), value, x)


def _log_series(fraction: Any, exponent: Any) -> Any:
    """Returns the logarithm of 1 + `fraction`, smallest summands first."""

    def sum_terms(square: Any) -> Any:
        small = _polynomial(fraction, _LOG) * fraction * square + exponent * _number(_LN2_LOW)
        return fraction + (small - square * _number(0.5)) + exponent * _number(_LN2_HIGH)

    return bind_once(fraction * fraction, sum_terms)


def tanh(x: Any) -> Any:
    return _odd_rational(x, one_from=_TANH_IS_ONE, over=_TANH_OVER, under=_TANH_UNDER)


def erf(x: Any) -> Any:
    return _odd_rational(x, one_from=_ERF_IS_ONE, over=_ERF_OVER, under=_ERF_UNDER)


def _odd_rational(x: Any, *, one_from: float, over: Sequence[float], under: Sequence[float]) -> Any:
    def ratio(near: Any) -> Any:
        return bind_once(
            near * near,
            lambda square: near * _polynomial(square, over) / _polynomial(square, under),
        )

    return bind_once(_clamp(x, -one_from, one_from), ratio)


def bind_once(value: Any, body: Callable[[Any], Any]) -> Any:
    """Returns the body with the value bound to a variable, so that it is computed once."""
    name = tirx.Var("t", value.ty)
    return tirx.Let(name, value, body(name))


def _clamp(x: Any, least: float, most: float) -> Any:
    """Clamps the number. NaN stays NaN: LLVM returns the second of two unordered operands."""
    return tirx.max(_like(x, least), tirx.min(_like(x, most), x))


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Evaluates the polynomial by Horner's scheme, the highest power first."""
    first, *others = coefficients
    value = _like(x, first)
    for coefficient in others:
        value = value * x + _number(coefficient)
    return value


def _number(value: float) -> Any:
    return tirx.const(value, "float32")


def _like(x: Any, value: float) -> Any:
    """Returns the value broadcast to the lanes of `x`."""
    _, _, lanes = str(x.ty).partition("x")
    return tirx.Broadcast(_number(value), int(lanes)) if lanes else _number(value)


def _int32(value: int) -> Any:
    return tirx.const(value, "int32")


def _integer(x: Any) -> str:
    """Returns the integer type with as many lanes."""
    return str(x.ty).replace("float", "int")
