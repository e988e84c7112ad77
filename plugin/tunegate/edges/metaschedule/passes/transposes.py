"""Transposes that undo each other, with operators between them that work on single elements.

TVM's change of layouts knows no other layout of `clip`, nor of a product with a constant of one
element: it turns the image back for them, so that a convolution cannot be fused with what follows.
Convolutions that are turned one by one have such transposes everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax

_TRANSPOSE = "relax.permute_dims"
_ELEMENTWISE = frozenset(
    f"relax.{name}"
    for name in (
        *("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "clip"),
        *("nn.relu", "nn.leakyrelu", "nn.silu", "nn.gelu", "nn.gelu_tanh", "nn.softplus"),
        *("sigmoid", "tanh", "exp", "log", "erf", "sqrt", "rsqrt", "abs", "negative", "square"),
    )
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
        if len(axes) != 1:
            return call
        order = axes.pop()
        plain = [
            _turned_back(argument, order) if found is None else found.args[0]
            for found, argument in zip(transposes, call.args, strict=True)
        ]
        if any(argument is None for argument in plain):
            return call
        result = self.builder_.emit(relax.Call(call.op, plain, call.attrs))
        return relax.op.permute_dims(result, list(order))

    def _transposed(self, value: Any) -> Any | None:
        """The transpose that made the value."""
        made = self.lookup_binding(value) if isinstance(value, relax.Var) else None
        return made if _is_transpose(made) else None


def _turned_back(value: Any, axes: tuple[int, ...]) -> Any | None:
    """A number, or a constant as it is before such a transpose; None for what is computed."""
    if isinstance(value, tvm.tirx.IntImm | tvm.tirx.FloatImm):
        return value
    if not isinstance(value, tvm.ir.GenericConst):
        return None
    numbers = value.value.numpy()
    if numbers.ndim > len(axes):
        return None
    if numbers.size == 1:
        return value
    whole = numbers.reshape((1,) * (len(axes) - numbers.ndim) + numbers.shape)
    turned = np.ascontiguousarray(whole.transpose(_inverse(axes)))
    return relax.const(turned, str(turned.dtype))


def _axes(transpose: Any) -> tuple[int, ...]:
    axes = transpose.attrs.axes
    if axes is None:
        return tuple(reversed(range(len(transpose.args[0].ty.shape))))
    return tuple(int(axis) for axis in axes)


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axes.index(place) for place in range(len(axes)))
