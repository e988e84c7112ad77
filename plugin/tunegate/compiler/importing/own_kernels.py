"""Kernels that take the place of TVM's own, which compute other numbers than ONNX Runtime, or read
outside of a tensor."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tvm import relax, te, tirx
from tvm.ir import GenericConst, Op
from tvm.ir.expr import TensorLoad
from tvm.s_tir import SBlock
from tvm.target import Target
from tvm.tirx import BufferStore, FloatImm, IntImm, PrimFunc, SeqStmt
from tvm_ffi import structural_map, structural_walk

from tunegate.compiler.importing.chain_cuts import OPAQUE, PATTERN
from tunegate.compiler.schedules.unscheduled import does_nothing, loops_over_nothing

# Indices. TVM reads and writes wherever they say. ONNX Runtime stops there with an error, which a
# kernel cannot do: here an index outside means the nearest element.

Legalize = Callable[[Any, Any], Any]
_AS_THEY_ARE = "fast"
"""The way of a call that takes its indices to be inside."""
_TAKE, _ELEMENTS = "relax.take", ("relax.gather_elements", "relax.scatter_elements")
_COORDINATES = ("relax.gather_nd", "relax.scatter_nd")


def _within(extents: Callable[[Any], Sequence[int]]) -> Legalize:
    """Legalizes a call with its indices inside of `extents`: one for all, or one for each
    coordinate of their last axis."""

    def legalize(builder: Any, call: Any) -> Any:
        data, indices, *others = call.args
        most = extents(call)
        is_inside = isinstance(indices, GenericConst) and _are_inside(indices.value.numpy(), most)
        if not is_inside and getattr(call.attrs, "mode", _AS_THEY_ARE) == _AS_THEY_ARE:
            indices = builder.emit(builder.call_te(_clamp, indices, most))
        safe_call = relax.Call(call.op, [data, indices, *others], call.attrs, call.ty_args)
        return call.op.get_attr("FLegalize")(builder, builder.normalize(safe_call))

    return legalize


def _are_inside(indices: Any, extents: Sequence[int]) -> bool:
    return bool(((indices >= 0) & (indices < extents)).all())


def _clamp(indices: Any, extents: Sequence[int]) -> Any:
    def nearest_index(*at: Any) -> Any:
        index, dtype = indices[at], indices.dtype
        last: Any = tirx.const(extents[0] - 1, dtype)
        for place, extent in enumerate(extents[1:], 1):
            last = tirx.Select(at[-1] == place, tirx.const(extent - 1, dtype), last)
        return tirx.min(tirx.max(index, tirx.const(0, dtype)), last)

    return te.compute(indices.shape, nearest_index, name="nearest")


def _of_images(builder: Any, call: Any) -> Any:
    """Legalizes RoiAlign and MaxRoiPool: the first column of a region says of which image it is,
    and the others where it begins and ends. TVM takes no sample of a region of no size, and leaves
    what it should write as it was."""
    image, regions = call.args
    regions = builder.emit(builder.call_te(_of_nearest_image, regions, image.ty.shape[0]))
    safe_call = relax.Call(call.op, [image, regions], call.attrs, call.ty_args)
    result = call.op.get_attr("FLegalize")(builder, builder.normalize(safe_call))
    if not getattr(call.attrs, "aligned", False) or call.attrs.sample_ratio > 0:
        return result
    return builder.call_te(_zero_where_empty, builder.emit(result), regions)


def _of_nearest_image(regions: Any, images: Any) -> Any:
    def nearest(row: Any, column: Any) -> Any:
        number, dtype = regions[row, column], regions.dtype
        zero, last = tirx.const(0, dtype), tirx.Cast(dtype, images - 1)
        inside = tirx.Select(number > zero, tirx.min(number, last), zero)  # NaN is of the first
        return tirx.Select(column == 0, inside, number)

    return te.compute(regions.shape, nearest, name="nearest")


def _zero_where_empty(numbers: Any, regions: Any) -> Any:
    def element(*at: Any) -> Any:
        row = at[0]
        has_size = tirx.all(*(regions[row, end] > regions[row, end - 2] for end in (3, 4)))
        return tirx.Select(has_size, numbers[at], tirx.const(0, numbers.dtype))

    return te.compute(numbers.shape, element, name="written")


def _extents_of_axis(call: Any) -> Sequence[int]:
    shape, axis = [int(each) for each in call.args[0].ty.shape], call.attrs.axis
    return [math.prod(shape) if axis is None else shape[int(axis)]]


def _extents_of_coordinates(call: Any) -> Sequence[int]:
    shape = [int(each) for each in call.args[0].ty.shape]
    first = int(getattr(call.attrs, "batch_dims", 0))
    return shape[first : first + int(call.args[1].ty.shape[-1])]


# Single numbers.


def _first_if_none(builder: Any, call: Any) -> Any:
    """Legalizes ArgMax and ArgMin: TVM gives -1 for a row that has nothing but the worst number."""
    index = builder.emit(call.op.get_attr("FLegalize")(builder, call))
    return builder.call_te(_clamp, index, _extents_of_axis(call), primfunc_name_hint="index")


def _sign(builder: Any, call: Any) -> Any:
    """Legalizes Sign: NaN has none, and stays."""

    def sign(x: Any) -> Any:
        def of(*at: Any) -> Any:
            one, zero = (tirx.const(number, x.dtype) for number in (1, 0))
            if str(x.dtype).startswith(("u", "bool")):
                return tirx.Select(x[at] > zero, one, zero)
            return tirx.Select(x[at] > zero, one, tirx.Select(x[at] < zero, -one, x[at]))

        return te.compute(x.shape, of, name="sign")

    return builder.call_te(sign, call.args[0], primfunc_name_hint="tir_sign")


LEGALIZERS = {
    _TAKE: _within(_extents_of_axis),
    **dict.fromkeys(_ELEMENTS, _within(_extents_of_axis)),
    **dict.fromkeys(_COORDINATES, _within(_extents_of_coordinates)),
    **dict.fromkeys(("relax.vision.roi_align", "relax.vision.roi_pool"), _of_images),
    **dict.fromkeys(("relax.argmax", "relax.argmin"), _first_if_none),
    "relax.sign": _sign,
}
"""Our legalization of each operator, by its name in Relax."""


def with_nan_and_infinity(module: Any) -> Any:
    """Returns the legalized module, changed where NaN would be lost in a maximum or minimum with
    another number, and a window of minus infinity in a pooling. For CUDA the text of a kernel keeps
    NaN (cuda_text.py). Whole numbers are divided so that no processor stops."""
    clone, is_of_llvm = module.clone(), Target.current().kind.name == "llvm"
    for variable, kernel in module.functions.items():
        if not isinstance(kernel, PrimFunc):
            continue
        function = structural_map(kernel, [(_DIVISIONS, _without_trap)])
        clone.update_func(variable, function)
        if variable.name_hint.startswith("max_pool"):
            clone.update_func(variable, structural_map(function, [(FloatImm, _infinite)]))
        elif is_of_llvm and not _reduces(function):
            clone.update_func(
                variable, structural_map(function, [((tirx.Max, tirx.Min), _keep_nan)])
            )
    return clone


def with_infinite_extremes(module: Any) -> Any:
    """Returns the scheduled module, in which a maximum begins with minus infinity and a minimum
    with infinity. TVM begins with the last finite number, and schedules know a maximum by that."""
    clone = module.clone()
    for variable, function in module.functions.items():
        buffers = _extremes(function) if isinstance(function, PrimFunc) else []
        if buffers:
            initialize = partial(_begun_with_infinity, buffers)
            clone.update_func(variable, structural_map(function, [(BufferStore, initialize)]))
    return clone


def _extremes(function: Any) -> list[Any]:
    """Returns the buffers that hold a maximum or minimum so far."""
    buffers: list[Any] = []

    def look(store: Any) -> None:
        value = store.value
        if isinstance(value, (tirx.Max, tirx.Min)) and any(
            isinstance(each, TensorLoad) and each.source.same_as(store.buffer)
            for each in (value.a, value.b)
        ):
            buffers.append(store.buffer)

    structural_walk(function, [(BufferStore, look)])
    return buffers


def _begun_with_infinity(buffers: Sequence[Any], store: Any) -> Any:
    number = store.value
    is_first = isinstance(number, FloatImm) and any(
        store.buffer.same_as(buffer) for buffer in buffers
    )
    if not is_first:
        return store
    dtype = str(number.ty.dtype)
    for limit, endless in (tirx.min_value(dtype), -math.inf), (tirx.max_value(dtype), math.inf):
        if number.value == limit.value:
            return BufferStore(store.buffer, FloatImm(dtype, endless), store.indices)
    return store


def _infinite(number: Any) -> Any:
    """Returns minus infinity for the least finite number, with which TVM's pooling begins."""
    dtype = str(number.ty.dtype)
    is_least = number.value == tirx.min_value(dtype).value
    return FloatImm(dtype, -math.inf) if is_least else number


_DIVISIONS = (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)


def _without_trap(division: Any) -> Any:
    """Returns a division of whole numbers by another computed number, or by 1 where that is 0. By
    -1 it is the negative number and no rest: the smallest number has no positive one, and a
    processor stops there, too."""
    divisor, dtype = division.b, str(division.ty.dtype)
    loads: list[Any] = []
    structural_walk(divisor, [(TensorLoad, loads.append)])
    if not loads or not dtype.startswith(("int", "uint")):
        return division
    zero, one = (tirx.const(number, dtype) for number in (0, 1))
    if dtype.startswith("uint"):
        return type(division)(division.a, tirx.Select(divisor == zero, one, divisor))
    is_minus_one = divisor == tirx.const(-1, dtype)
    by_itself = tirx.any(divisor == zero, is_minus_one)
    quotient = type(division)(division.a, tirx.Select(by_itself, one, divisor))
    # Without a sign it wraps: LLVM takes for granted that signed numbers do not. TVM takes for
    # granted that no number is subtracted from a smaller one.
    unsigned = f"u{dtype}"
    complement = tirx.bitwise_not(division.a.astype(unsigned))
    negative = (complement + tirx.const(1, unsigned)).astype(dtype)
    is_rest = isinstance(division, (tirx.Mod, tirx.FloorMod))
    return tirx.Select(is_minus_one, zero if is_rest else negative, quotient)


def _reduces(function: Any) -> bool:
    """Returns whether a kernel sums or searches. Schedules know its maximum by its form."""
    initializers: list[Any] = []
    structural_walk(function, [(SBlock, lambda block: initializers.append(block.init))])
    return any(init is not None for init in initializers)


def _keep_nan(number: Any) -> Any:
    """Returns a maximum or minimum that is NaN where a number is. LLVM's code for it compares, and
    takes the second number where one is NaN."""
    one, other = number.a, number.b
    if not str(number.ty.dtype).startswith("float"):
        return number
    if isinstance(other, FloatImm):
        return type(number)(other, one)
    return tirx.Select(tirx.isnan(one), one, number)


# Tensors without a number, as a split leaves them that takes all. Loops over one do nothing on a
# CPU. On a GPU loops are shared among threads, and TVM divides by their steps.


def without_empty_tensors(module: Any) -> Any:
    """Returns the module of kernels without what computes or reads a tensor without a number, where
    a kernel computes others, too."""
    clone = module.clone()
    for variable, function in module.functions.items():
        is_kernel = isinstance(function, PrimFunc) and loops_over_nothing(function)
        if is_kernel and not does_nothing(function):
            clone.update_func(variable, structural_map(function, _OF_NOTHING))
    return clone


def _is_empty(buffer: Any) -> bool:
    return any(isinstance(extent, IntImm) and int(extent) == 0 for extent in buffer.shape)


def _without_empty_loops(sequence: Any) -> Any:
    statements = [each for each in sequence.seq if not loops_over_nothing(each)]
    return statements[0] if len(statements) == 1 else SeqStmt(statements)


def _without_empty_buffers(block: Any) -> Any:
    reads = [region for region in block.reads if not _is_empty(region.source)]
    buffers = [buffer for buffer in block.alloc_buffers if not _is_empty(buffer)]
    return SBlock(
        block.iter_vars,
        reads,
        block.writes,
        block.name_hint,
        block.body,
        block.init,
        buffers,
        block.match_buffers,
        block.annotations,
    )


def _zero_of_nothing(load: Any) -> Any:
    return tirx.const(0, load.ty.dtype) if _is_empty(load.source) else load


_OF_NOTHING = [
    (TensorLoad, _zero_of_nothing),
    (SeqStmt, _without_empty_loops),
    (SBlock, _without_empty_buffers),
]


# Running sums (CumSum) on a GPU, in steps of which each is a kernel. In TVM's own kernel a thread
# reads what other threads of its warp write, without a barrier between. Since sm_70 the threads of
# a warp run each by itself, so that is a race. Here a step adds to each number the one that lies 1,
# 2, 4, … places before it (Hillis and Steele, 1986): n numbers take log2(n) steps.

_CUMSUM = Op.get("relax.cumsum")


def with_running_sums_in_steps(module: Any) -> Any:
    """Returns the module, a copy where it has running sums."""
    main = module.get_global_var("main")
    steps = _Steps(module)
    stepwise_main = steps.visit_expr(module[main])
    if stepwise_main.same_as(module[main]):
        return module
    steps.builder_.update_func(main, stepwise_main)
    return steps.builder_.get()


@relax.expr_functor.mutator
class _Steps(relax.PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        new_call = self.visit_expr_post_order(call)
        if not new_call.op.same_as(_CUMSUM):
            return new_call
        x, dtype = new_call.args[0], str(call.ty.dtype)
        if str(x.ty.dtype) != dtype:
            x = self.builder_.emit(relax.op.astype(x, dtype))
        axis = int(new_call.attrs.axis)
        length = int(call.ty.shape[axis])
        if new_call.attrs.exclusive:
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
    """Returns `x`, each number plus the one `places` before it along `axis`, in its shape and
    dtype."""
    return te.compute(x.shape, lambda *at: x[at] + _earlier(x, at, axis, places), name="sum")


def exclusive_sum(x: Any, axis: int, places: int) -> Any:
    """Returns `x` shifted by `places` along `axis`, with 0 before the first, in its shape and
    dtype."""
    return te.compute(x.shape, lambda *at: _earlier(x, at, axis, places), name="earlier")


def _earlier(x: Any, at: tuple[Any, ...], axis: int, places: int) -> Any:
    """Returns the number so many places before this one; 0 before the first."""
    axis %= len(at)
    before = (*at[:axis], at[axis] - places, *at[axis + 1 :])
    return tirx.if_then_else(at[axis] >= places, x[before], tirx.const(0, x.dtype))
