"""Rebuilds expressions of a kernel with other variables and loads: the compiler's own substitution
is not exposed in Python."""

from collections.abc import Callable, Mapping
from typing import Any

from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.tirx import FloatImm, IntImm
from tvm.tirx.script.builder import ir as T

from tunegate.errors import UnsupportedModelError

Load = Callable[[Any, list[Any]], Any]
"""Makes a load of a buffer and its indices."""


def rewritten(expression: Any, variables: Mapping[Any, Any], load: Load) -> Any:
    """Returns the expression with its variables replaced. Raises UnsupportedModelError for an
    unknown kind of expression."""

    def of(part: Any) -> Any:
        if isinstance(part, tirx.Var):
            return variables.get(part, part)
        if isinstance(part, TensorLoad):
            return load(part.source, [of(index) for index in part.indices])
        return _rebuild(part, of)

    return of(expression)


def _rebuild(expression: Any, of: Callable[[Any], Any]) -> Any:
    """Returns the expression with its parts replaced."""
    match expression:
        case IntImm() | FloatImm():
            return expression
        case Call():
            arguments = [of(argument) for argument in expression.args]
            return Call(
                expression.op, arguments, expression.attrs, expression.ty_args, ret_ty=expression.ty
            )
        case tirx.Cast():
            return tirx.Cast(str(expression.ty), of(expression.value))
        case tirx.Select():
            values = of(expression.true_value), of(expression.false_value)
            return tirx.Select(of(expression.condition), *values)
        case tirx.Not():
            return tirx.Not(of(expression.a))
        case _ if hasattr(expression, "b"):
            return type(expression)(of(expression.a), of(expression.b))
    message = f"a kernel computes a {type(expression).__name__}"
    raise UnsupportedModelError(message)


# Loops and buffers of kernels that are written by hand.


def int64_constant(number: int) -> Any:
    return tirx.const(number, "int64")


def loop(count: int, threads: int) -> Any:
    """Emits a loop whose steps several threads may share."""
    return T.parallel(int64_constant(count)) if threads > 1 else T.serial(int64_constant(count))


def whole_buffer(size: int, kind: str) -> Any:
    """Emits a buffer that is used by address: the compiler would otherwise keep only the elements
    that loads and stores name."""
    buffer = T.alloc_buffer((size,), kind)
    T.evaluate(buffer.access_ptr("rw"))
    return buffer
