"""Constants moved to another layout when a model is imported.

The compiler folds such a move by compiling a kernel for it, one for every weight: nearly all of the time that the import of a
network with convolutions takes. It is only moving numbers about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

_NUMBERS = frozenset("?biuf")
"""Kinds of numpy's own; others, as bfloat16, are left to the compiler."""


def with_moved_constants(module: Any) -> Any:
    """A Relax module before legalization, with every transposed or reshaped constant done."""
    moving = _Moving(module)
    for variable, function in list(module.functions.items()):
        if isinstance(function, relax.Function):
            moving.builder_.update_func(variable, moving.visit_expr(function))
    moved = moving.builder_.get()
    return relax.transform.DeadCodeElimination()(relax.transform.CanonicalizeBindings()(moved))


@mutator
class _Moving(PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        visited = self.visit_expr_post_order(call)
        move = _MOVES.get(getattr(call.op, "name", ""))
        value = None if move is None else self._value(visited.args[0])
        moved = None if move is None or value is None else move(value, call)
        if moved is None:
            return visited
        return relax.const(np.ascontiguousarray(moved), str(moved.dtype))

    def _value(self, argument: Any) -> np.ndarray | None:
        """Of a constant, or of a variable that is bound to one."""
        bound = self.lookup_binding(argument) if isinstance(argument, relax.Var) else argument
        if not isinstance(bound, tvm.ir.GenericConst):
            return None
        value: np.ndarray = bound.value.numpy()
        return value if value.dtype.kind in _NUMBERS else None


def _permuted(value: np.ndarray, call: Any) -> np.ndarray:
    axes = call.attrs.axes
    return np.transpose(value, None if axes is None else [int(axis) for axis in axes])


def _as_typed(value: np.ndarray, call: Any) -> np.ndarray | None:
    """With the shape of the result's type, where that is known."""
    shape = call.ty.shape
    if not isinstance(shape, relax.ShapeExpr):
        return None
    extents = list(shape.values)
    if not all(isinstance(extent, tvm.tirx.IntImm) for extent in extents):
        return None
    return np.reshape(value, [int(extent) for extent in extents])


_MOVES: dict[str, Callable[[np.ndarray, Any], np.ndarray | None]] = {
    "relax.permute_dims": _permuted,
    "relax.reshape": _as_typed,
    "relax.expand_dims": _as_typed,
    "relax.squeeze": _as_typed,
}
