"""Transposes that undo each other, with operators between them that work on single elements.

TVM's change of layouts knows no other layout of `clip`, nor of a product with a constant of one
element: it turns the image back for them, so that a convolution cannot be fused with what follows.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

_TRANSPOSE = "relax.permute_dims"
_ELEMENTWISE = frozenset(
    f"relax.{name}"
    for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "clip")
)


def without_inverse_transposes(module: Any) -> Any:
    """The Relax module with transposes moved behind such operators, and without the pairs that meet
    their inverse there. The module as it is where that leaves no fewer transposes."""
    main = module["main"]
    moved = _Moved(module).visit_expr(main)
    changed = relax.transform.DeadCodeElimination()(_with_main(module, moved))
    return changed if _transposes(changed) < _transposes(module) else module


def _with_main(module: Any, main: Any) -> Any:
    changed = module.clone()
    changed.update_func(changed.get_global_var("main"), main)
    return relax.transform.CanonicalizeBindings()(changed)


def _transposes(module: Any) -> int:
    found: list[Any] = []
    relax.analysis.post_order_visit(
        module["main"], lambda node: found.append(node) if _is_transpose(node) else None
    )
    return len(found)


def _is_transpose(node: Any) -> bool:
    return isinstance(node, relax.Call) and getattr(node.op, "name", "") == _TRANSPOSE


@relax.expr_functor.mutator
class _Moved(relax.PyExprMutator):  # type: ignore[misc]
    """Each operator on transposed values becomes a transpose of the operator."""

    def visit_call_(self, call: Any) -> Any:
        call = self.visit_expr_post_order(call)
        name = getattr(call.op, "name", "")
        if name == _TRANSPOSE:
            before = self._transposed(call.args[0])
            if before is not None and _axes(call) == _inverse(_axes(before)):
                return before.args[0]
            return call
        if name in _ELEMENTWISE:
            return self._behind(call)
        return call

    def _behind(self, call: Any) -> Any:
        """`call` with its transposes behind it, where all that it takes is transposed alike."""
        transposes = [self._transposed(argument) for argument in call.args]
        axes = {_axes(found) for found in transposes if found is not None}
        rest = [value for value, found in zip(call.args, transposes, strict=True) if found is None]
        if len(axes) != 1 or not all(_is_single(value, len(min(axes))) for value in rest):
            return call
        plain = [
            argument if found is None else found.args[0]
            for found, argument in zip(transposes, call.args, strict=True)
        ]
        result = self.builder_.emit(relax.Call(call.op, plain, call.attrs))
        return relax.op.permute_dims(result, list(axes.pop()))

    def _transposed(self, value: Any) -> Any | None:
        """The transpose that made the value."""
        made = self.lookup_binding(value) if isinstance(value, relax.Var) else None
        return made if _is_transpose(made) else None


def _is_single(value: Any, rank: int) -> bool:
    """A number, or a constant of one element, which is the same in every layout of that rank."""
    if isinstance(value, tvm.ir.GenericConst):
        numbers = value.value.numpy()
        return bool(numbers.size == 1 and numbers.ndim <= rank)
    return isinstance(value, tvm.tirx.IntImm | tvm.tirx.FloatImm)


def _axes(transpose: Any) -> tuple[int, ...]:
    axes = transpose.attrs.axes
    if axes is None:
        return tuple(reversed(range(len(transpose.args[0].ty.shape))))
    return tuple(int(axis) for axis in axes)


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axes.index(place) for place in range(len(axes)))
