"""Constants moved to another layout, when a model is imported and when it is built.

The compiler folds such a move by compiling a kernel for it, one for every weight: nearly
all of the time that the import of a network with convolutions takes, and much of a build's.
It is only moving numbers about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from tunegate.edges.metaschedule.passes.packing import moves_of

_NUMBERS = frozenset("?biuf")
"""Kinds of numpy's own; others, as bfloat16, are left to the compiler."""


def with_moved_constants(module: Any) -> Any:
    """A Relax module before legalization, with every transposed or reshaped constant done."""
    return _with_folded(module, _Moving(module))


def with_packed_constants(module: Any) -> Any:
    """A Relax module of scheduled functions, with every packing of constants
    done that is a packing alone."""
    return _with_folded(module, _Packing(module))


def _with_folded(module: Any, folding: Any) -> Any:
    for variable, function in list(module.functions.items()):
        if isinstance(function, relax.Function):
            folding.builder_.update_func(variable, folding.visit_expr(function))
    done = folding.builder_.get()
    return relax.transform.DeadCodeElimination()(relax.transform.CanonicalizeBindings()(done))


@mutator
class _Moving(PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        visited = self.visit_expr_post_order(call)
        move = _MOVES.get(getattr(call.op, "name", ""))
        value = None if move is None else _numbers(_bound(visited.args[0], self))
        moved = None if move is None or value is None else move(value, call)
        return visited if moved is None else _constant(moved)


@mutator
class _Packing(PyExprMutator):  # type: ignore[misc]
    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self._module = module

    def visit_call_(self, call: Any) -> Any:
        visited = self.visit_expr_post_order(call)
        if getattr(call.op, "name", "") != "relax.call_tir":
            return visited
        arguments = [_bound(argument, self) for argument in visited.args[1].fields]
        is_constant = all(isinstance(each, tvm.ir.GenericConst) for each in arguments)
        moves = moves_of(self._module[call.args[0]]) if is_constant else None
        # Only now: the weights of every other kernel would be copied, to be read.
        constants = [] if moves is None else [_numbers(each) for each in arguments]
        values = [constant for constant in constants if constant is not None]
        if moves is None or len(values) < len(constants):
            return visited
        packed = [_constant(move.of(values[move.argument])) for move in moves]
        return packed[0] if len(packed) == 1 else relax.Tuple(packed)


def _bound(argument: Any, scope: Any) -> Any:
    """Itself, or what a variable is bound to."""
    return scope.lookup_binding(argument) if isinstance(argument, relax.Var) else argument


def _numbers(bound: Any) -> np.ndarray | None:
    """The numbers of a constant, or None where the argument is not constant."""
    if not isinstance(bound, tvm.ir.GenericConst):
        return None
    value: np.ndarray = bound.value.numpy()
    return value if value.dtype.kind in _NUMBERS else None


def _constant(value: np.ndarray) -> Any:
    return relax.const(np.ascontiguousarray(value), str(value.dtype))


def _permuted(value: np.ndarray, call: Any) -> np.ndarray:
    axes = call.attrs.axes
    return np.transpose(value, None if axes is None else [int(axis) for axis in axes])


def _as_typed(value: np.ndarray, call: Any) -> np.ndarray | None:
    """The value in the shape of the result's type, where that is known."""
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
