"""Running sums (CumSum) on a GPU, in steps of which each is a kernel.

In TVM's own kernel a thread reads what other threads of its warp write, without a barrier between.
Since sm_70 the threads of a warp run each by itself, so that is a race. Here a step adds to each
number the one that lies 1, 2, 4, … places before it (Hillis and Steele, 1986): n numbers take
log2(n) steps.
"""

from typing import Any

from tvm import relax, te, tirx
from tvm.ir import Op

from tunegate.compiler.importing.chain_cuts import OPAQUE, PATTERN

_CUMSUM = Op.get("relax.cumsum")


def with_running_sums_in_steps(module: Any) -> Any:
    """Returns the module, a copy where it has running sums."""
    main = module.get_global_var("main")
    steps = _Steps(module)
    changed = steps.visit_expr(module[main])
    if changed.same_as(module[main]):
        return module
    steps.builder_.update_func(main, changed)
    return steps.builder_.get()


@relax.expr_functor.mutator
class _Steps(relax.PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        visited = self.visit_expr_post_order(call)
        if not visited.op.same_as(_CUMSUM):
            return visited
        x, dtype = visited.args[0], str(call.ty.dtype)
        if str(x.ty.dtype) != dtype:
            x = self.builder_.emit(relax.op.astype(x, dtype))
        axis = int(visited.attrs.axis)
        length = int(call.ty.shape[axis])
        if visited.attrs.exclusive:
            x = self._kernel(exclusive_sum, x, axis, 1)
        places = 1
        while places < length:
            x = self._kernel(running_sum, x, axis, places)
            places *= 2
        return x

    def _kernel(self, compute: Any, x: Any, axis: int, places: int) -> Any:
        # Fused, the steps would be inlined into each other: n reads for each number.
        return self.builder_.emit_te(compute, x, axis, places, primfunc_attrs={PATTERN: OPAQUE})


def running_sum(x: Any, axis: int, places: int) -> Any:
    return te.compute(x.shape, lambda *at: x[at] + _earlier(x, at, axis, places), name="sum")


def exclusive_sum(x: Any, axis: int, places: int) -> Any:
    return te.compute(x.shape, lambda *at: _earlier(x, at, axis, places), name="earlier")


def _earlier(x: Any, at: tuple[Any, ...], axis: int, places: int) -> Any:
    """Returns the number so many places before this one; 0 before the first."""
    axis %= len(at)
    before = (*at[:axis], at[axis] - places, *at[axis + 1 :])
    return tirx.if_then_else(at[axis] >= places, x[before], tirx.const(0, x.dtype))
