"""Expressions of a kernel with other variables and other loads: the compiler's own substitution has
no door in Python."""

from __future__ import annotations

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
    """Returns the expression with these in the place of its variables. Raises UnsupportedModelError
    for one of a kind that is not known here."""

    def of(part: Any) -> Any:
        if isinstance(part, tirx.Var):
            return variables.get(part, part)
        if isinstance(part, TensorLoad):
            return load(part.source, [of(index) for index in part.indices])
        return _of_parts(part, of)

    return of(expression)


def _of_parts(whole: Any, of: Callable[[Any], Any]) -> Any:
    """The expression of other parts."""
    match whole:
        case IntImm() | FloatImm():
            return whole
        case Call():
            arguments = [of(argument) for argument in whole.args]
            return Call(whole.op, arguments, whole.attrs, whole.ty_args, ret_ty=whole.ty)
        case tirx.Cast():
            return tirx.Cast(str(whole.ty), of(whole.value))
        case tirx.Select():
            chosen = of(whole.true_value), of(whole.false_value)
            return tirx.Select(of(whole.condition), *chosen)
        case tirx.Not():
            return tirx.Not(of(whole.a))
        case _ if hasattr(whole, "b"):
            return type(whole)(of(whole.a), of(whole.b))
    message = f"a kernel computes a {type(whole).__name__}"
    raise UnsupportedModelError(message)


# Loops and buffers of the kernels that are written out.


def long(number: int) -> Any:
    return tirx.const(number, "int64")


def loop(count: int, threads: int) -> Any:
    """A loop whose steps several threads may share."""
    return T.parallel(long(count)) if threads > 1 else T.serial(long(count))


def whole_buffer(size: int, kind: str) -> Any:
    """Emits a buffer that is used by address: the compiler would keep of it only what loads and
    stores name."""
    buffer = T.alloc_buffer((size,), kind)
    T.evaluate(buffer.access_ptr("rw"))
    return buffer
