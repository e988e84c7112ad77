"""ONNX's Clip as two operators that the compiler's passes know.

TVM imports it as kernels of its own, with bounds that are computed in case they are no numbers: no
pass sees through them, so that an image changes its layout before each and after it.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import tvm
from tvm import relax

_BOUND = re.compile(r"(maximum|minimum)\d*")
_OPERATORS = {"maximum": relax.op.maximum, "minimum": relax.op.minimum}


def with_plain_clips(module: Any) -> Any:
    """The Relax module with every maximum and minimum of a value and a constant number as the
    operator of that name."""
    main = _Plain(module).visit_expr(module["main"])
    changed = module.clone()
    changed.update_func(changed.get_global_var("main"), main)
    return relax.transform.DeadCodeElimination()(changed)


@relax.expr_functor.mutator
class _Plain(relax.PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        call = self.visit_expr_post_order(call)
        if getattr(call.op, "name", "") != "relax.call_tir":
            return call
        kind = _BOUND.fullmatch(call.args[0].name_hint)
        if kind is None or len(call.args[1].fields) != len(("value", "bound")):
            return call
        value, bound = call.args[1].fields
        number = self._number(bound)
        if number is None:
            return call
        return _OPERATORS[kind[1]](value, relax.const(number, str(number.dtype)))

    def _number(self, bound: Any) -> np.ndarray | None:
        """Returns the constant of a bound; None where it is known only later."""
        made = self._made(bound)
        if isinstance(made, tvm.ir.GenericConst):
            found: np.ndarray = made.value.numpy()
            return found if found.ndim == 0 else None
        if getattr(getattr(made, "op", None), "name", "") != "relax.where":
            return None
        test, if_none, otherwise = (self._made(argument) for argument in made.args)
        if getattr(getattr(test, "op", None), "name", "") != "relax.isnan":
            return None
        tested = self._number(test.args[0])
        return None if tested is None else self._number(if_none if np.isnan(tested) else otherwise)

    def _made(self, value: Any) -> Any:
        return self.lookup_binding(value) if isinstance(value, relax.Var) else value
