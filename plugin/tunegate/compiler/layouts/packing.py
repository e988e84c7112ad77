"""Constants in the order in which kernels read them: moved and packed with numpy, padded to whole
vectors, and split off the kernels that a candidate times."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import tvm
from tvm import relax
from tvm.ir import TensorLoad
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.s_tir import SBlock, SBlockRealize
from tvm.s_tir import meta_schedule as ms
from tvm.tirx import BufferStore, FloorDiv, FloorMod, For, IntImm, Var

from tunegate.compiler.layouts.layout import CHANNELS_LAST, ELEMENTWISE
from tunegate.compiler.schedules.product_tiles import register_tile, sums_per_read
from tunegate.compiler.search.workload import Workload, canonical_workload
from tunegate.compiler.targets import vector_registers
from tunegate.tune.prior import VectorRegisters

# Packs constants with numpy: the compiler's layouts are only splits and transpositions. Compiling a
# kernel for it is a third of a candidate's compile time, and that kernel runs once.


class Digit(NamedTuple):
    """A digit of the index along an axis: (index // stride) % extent."""

    axis: int
    stride: int
    extent: int


class Move(NamedTuple):
    """One argument in a new layout. `before` and `after` have the loop digit of each dimension;
    None is a dimension of one."""

    argument: int
    before: tuple[Digit | None, ...]
    after: tuple[Digit | None, ...]

    def of(self, value: np.ndarray) -> np.ndarray:
        """Returns the argument in its new layout: any shape whose dimensions have the extents of
        `before`, in the same dtype, contiguous."""
        before, after = ([d for d in digits if d] for digits in (self.before, self.after))
        value = value.reshape([digit.extent for digit in before])
        value = value.transpose([before.index(digit) for digit in _by_axis(before)])
        parts = _by_axis(after)
        value = value.reshape([digit.extent for digit in parts])
        value = value.transpose([parts.index(digit) for digit in after])
        shape = [digit.extent if digit else 1 for digit in self.after]
        return np.ascontiguousarray(value.reshape(shape))


def moves_of(prepack: Any) -> tuple[Move, ...] | None:
    """Returns one move for each output of a function that only changes layouts, in order; None if
    it does anything else."""
    if not isinstance(prepack.body, SBlockRealize):
        return None
    buffers, body = list(prepack.params), prepack.body.block.body
    moves: dict[int, Move] = {}
    for nest in getattr(body, "seq", [body]):
        item = _buffer_and_move(nest, buffers)
        if item is None:
            return None
        moves.update([item])
    outputs = range(len(buffers) - len(moves), len(buffers))
    return tuple(moves[output] for output in outputs) if set(moves) == set(outputs) else None


def _buffer_and_move(nest: Any, buffers: Sequence[Any]) -> tuple[int, Move] | None:
    """Returns the index of the buffer that a loop nest writes, and the move."""
    while isinstance(nest, For):
        nest = nest.body
    if not isinstance(nest, SBlockRealize):
        return None
    block, store = nest.block, nest.block.body
    if not isinstance(store, BufferStore) or not isinstance(store.value, TensorLoad):
        return None
    axes = [variable.var for variable in block.iter_vars]
    loops = tuple(int(variable.dom.extent) for variable in block.iter_vars)
    output, argument = _number(buffers, store.buffer), _number(buffers, store.value.source)
    before, after = (_digits(i, axes, loops) for i in (store.value.indices, store.indices))
    if output is None or argument is None or before is None or after is None:
        return None
    sizes = {math.prod(map(int, buffers[n].shape)) for n in (output, argument)}
    return (output, Move(argument, before, after)) if sizes == {math.prod(loops)} else None


def _number(buffers: Sequence[Any], target: Any) -> int | None:
    return next((n for n, buffer in enumerate(buffers) if buffer.same_as(target)), None)


def _digits(
    indices: Iterable[Any], axes: Sequence[Any], loops: Sequence[int]
) -> tuple[Digit | None, ...] | None:
    """Returns the digits of the indices, None if they do not give every loop exactly once."""
    digits: list[Digit | None] = []
    for index in indices:
        if isinstance(index, IntImm) and int(index) == 0:
            digits.append(None)
            continue
        digit = _digit(index, axes, loops)
        if digit is None:
            return None
        digits.append(digit if digit.extent > 1 else None)
    return tuple(digits) if _covers([digit for digit in digits if digit], loops) else None


def _digit(index: Any, axes: Sequence[Any], loops: Sequence[int]) -> Digit | None:
    if isinstance(index, Var):
        axis = next((n for n, variable in enumerate(axes) if variable.same_as(index)), None)
        return None if axis is None else Digit(axis, 1, loops[axis])
    if not isinstance(index, (FloorDiv, FloorMod)) or not isinstance(index.b, IntImm):
        return None
    inner, number = _digit(index.a, axes, loops), int(index.b)
    if inner is None or inner.extent % number:
        return None
    if isinstance(index, FloorMod):
        return Digit(inner.axis, inner.stride, number)
    return Digit(inner.axis, inner.stride * number, inner.extent // number)


def _covers(digits: Sequence[Digit], loops: Sequence[int]) -> bool:
    strides = [1] * len(loops)
    for digit in reversed(_by_axis(digits)):
        if digit.stride != strides[digit.axis]:
            return False
        strides[digit.axis] *= digit.extent
    return strides == list(loops)


def _by_axis(digits: Iterable[Digit]) -> list[Digit]:
    """Returns the digits by axis, the most significant first."""
    return sorted(digits, key=lambda digit: (digit.axis, -digit.stride))


# Moves constants to another layout, at import and at build time. The compiler folds such a move by
# compiling a kernel for every weight: nearly all of the import time of a convolutional network, and
# much of its build. It is only a copy in another order.

_NUMBERS = frozenset("?biuf")
"""NumPy's own kinds of numbers; others, such as bfloat16, are left to the compiler."""


def with_moved_constants(module: Any) -> Any:
    """Returns a Relax module, not yet legalized, with every transpose and reshape of a constant
    folded."""
    return _fold(module, _Moving(module))


def _fold(module: Any, folding: Any) -> Any:
    for variable, function in list(module.functions.items()):
        if isinstance(function, relax.Function):
            folding.builder_.update_func(variable, folding.visit_expr(function))
    folded_module = folding.builder_.get()
    return relax.transform.DeadCodeElimination()(
        relax.transform.CanonicalizeBindings()(folded_module)
    )


@mutator
class _Moving(PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        new_call = self.visit_expr_post_order(call)
        move = _MOVES.get(getattr(call.op, "name", ""))
        value = None if move is None else _numbers(_definition(new_call.args[0], self))
        result = None if move is None or value is None else move(value, call)
        return new_call if result is None else _constant(result)


@mutator
class _Packing(PyExprMutator):  # type: ignore[misc]
    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self._module = module

    def visit_call_(self, call: Any) -> Any:
        new_call = self.visit_expr_post_order(call)
        if getattr(call.op, "name", "") != "relax.call_tir":
            return new_call
        arguments = [_definition(argument, self) for argument in new_call.args[1].fields]
        is_constant = all(isinstance(argument, tvm.ir.GenericConst) for argument in arguments)
        moves = moves_of(self._module[call.args[0]]) if is_constant else None
        # Only now: reading copies weights, and other kernels need no packing.
        constants = [] if moves is None else [_numbers(argument) for argument in arguments]
        values = [constant for constant in constants if constant is not None]
        if moves is None or len(values) < len(constants):
            return new_call
        results = [_constant(move.of(values[move.argument])) for move in moves]
        return results[0] if len(results) == 1 else relax.Tuple(results)


def _definition(argument: Any, scope: Any) -> Any:
    """Returns the value that a variable is bound to, any other argument as it is."""
    return scope.lookup_binding(argument) if isinstance(argument, relax.Var) else argument


def _numbers(bound: Any) -> np.ndarray | None:
    """Returns the value of a constant, None if the argument is no constant."""
    if not isinstance(bound, tvm.ir.GenericConst):
        return None
    value: np.ndarray = bound.value.numpy()
    return value if value.dtype.kind in _NUMBERS else None


def _constant(value: np.ndarray) -> Any:
    return relax.const(np.ascontiguousarray(value), str(value.dtype))


def _permute(value: np.ndarray, call: Any) -> np.ndarray:
    axes = call.attrs.axes
    return np.transpose(value, None if axes is None else [int(axis) for axis in axes])


def _reshape(value: np.ndarray, call: Any) -> np.ndarray | None:
    """Returns the value reshaped to the result's type, None if that is not static."""
    shape = call.ty.shape
    if not isinstance(shape, relax.ShapeExpr):
        return None
    extents = list(shape.values)
    if not all(isinstance(extent, tvm.tirx.IntImm) for extent in extents):
        return None
    return np.reshape(value, [int(extent) for extent in extents])


_MOVES: dict[str, Callable[[np.ndarray, Any], np.ndarray | None]] = {
    "relax.permute_dims": _permute,
    "relax.reshape": _reshape,
    "relax.expand_dims": _reshape,
    "relax.squeeze": _reshape,
}


# Weights padded with zeros to whole vectors. A product whose innermost extent is no multiple of a
# register's lanes has no tile: one with 18385 classes took forty times as long as with 18408. What
# is too much of the result is cut off behind the element-wise operators that follow: they still
# fuse with the product.

_PRODUCT = "relax.matmul"
_MATRIX = 2
_MAX_VECTORS = 8


def with_whole_vectors(module: Any, target: Any) -> Any:
    """Returns a Relax module, not yet legalized, in which float32 products with constant weights,
    and convolutions with channels last, give whole vectors."""
    return _fold(module, _Padding(module, vector_registers(target)))


@mutator
class _Padding(PyExprMutator):  # type: ignore[misc]
    def __init__(self, module: Any, has: VectorRegisters) -> None:
        super().__init__(module)
        self._has = has
        self._padded: set[Any] = set()
        self._names = {
            binding.value: binding.var.name
            for block in module["main"].body.blocks
            for binding in block.bindings
        }

    def visit_call_(self, call: Any) -> Any:
        new_call = self.visit_expr_post_order(call)
        if getattr(call.op, "name", "") in ELEMENTWISE:
            return self._behind(new_call, call)
        weights = _numbers(_definition(new_call.args[1], self)) if _is_product(call) else None
        if weights is None or weights.dtype != np.float32 or not _is_static(call):
            return new_call
        extents = [int(extent) for extent in call.ty.shape]
        columns = _padded_extent(extents, self._has)
        if columns == extents[-1] or weights.shape[-1] != extents[-1]:
            return new_call
        wide = relax.Call(new_call.op, [new_call.args[0], _pad(weights, columns)], new_call.attrs)
        return self._slice_of_wide(wide, call)

    def _behind(self, new_call: Any, call: Any) -> Any:
        """Returns an element-wise operator with its cuts behind it, if all operands can be wide."""
        wide = [self._before_cut(argument) for argument in new_call.args]
        widths = {int(each.ty.shape[-1]) for each in wide if each is not None}
        if len(widths) != 1 or not _is_static(call):
            return new_call
        (width,), extent = widths, int(call.ty.shape[-1])
        operands = [
            self._widen_operand(argument, extent, width) if each is None else each
            for argument, each in zip(new_call.args, wide, strict=True)
        ]
        if any(operand is None for operand in operands):
            return new_call
        return self._slice_of_wide(relax.Call(new_call.op, operands, new_call.attrs), call)

    def _slice_of_wide(self, wide: Any, call: Any) -> Any:
        """Returns the part of `wide` that stands for `call`, and gives it the same name."""
        value = self.builder_.emit(wide, self._names.get(call, ""))
        self._padded.add(value)
        last = len(call.ty.shape) - 1
        return relax.op.strided_slice(value, [last], [0], [call.ty.shape[last]])

    def _before_cut(self, argument: Any) -> Any | None:
        definition = _definition(argument, self)
        is_call = isinstance(definition, relax.Call) and definition.args
        return definition.args[0] if is_call and definition.args[0] in self._padded else None

    def _widen_operand(self, argument: Any, extent: int, width: int) -> Any | None:
        """Returns the operand of a wide operator, None for a computed value of each number."""
        shape = getattr(getattr(argument, "ty", None), "shape", None)
        if shape is None or len(shape) == 0 or int(shape[-1]) == 1 != extent:
            return argument
        values = _numbers(_definition(argument, self))
        return None if values is None else _pad(values, width)


def _is_product(call: Any) -> bool:
    name, attributes = getattr(call.op, "name", ""), call.attrs
    if name not in CHANNELS_LAST:
        return name == _PRODUCT and len(call.args[1].ty.shape) == _MATRIX
    layouts = (attributes.data_layout, attributes.kernel_layout, attributes.out_layout)
    return [*map(str, layouts)] == CHANNELS_LAST[name] and int(attributes.groups) == 1


def _is_static(call: Any) -> bool:
    shape = getattr(call.ty, "shape", None)
    return isinstance(shape, relax.ShapeExpr) and all(
        isinstance(extent, IntImm) for extent in shape.values
    )


def _padded_extent(extents: Sequence[int], has: VectorRegisters) -> int:
    """Returns the innermost extent with which the product should be computed: the one that takes
    the fewest reads with its best tile."""
    *outer, extent = extents
    if extent <= has.lanes or extent % has.lanes == 0 or not outer:
        return extent
    lanes = (vectors * has.lanes for vectors in range(1, _MAX_VECTORS + 1))

    def reads(width: int) -> float:
        tile = register_tile([*outer, width], range(len(outer)), has)
        return math.inf if tile is None else width / sums_per_read(tile, has)

    return min({-(-extent // lane) * lane for lane in lanes}, key=lambda each: (reads(each), each))


def _pad(values: np.ndarray, width: int) -> Any:
    missing = width - values.shape[-1]
    return _constant(np.pad(values, [*[(0, 0)] * (values.ndim - 1), (0, missing)]))


# Weights in the order in which a schedule reads them, packed once at build time. The functions of a
# model say which buffers are constants (`layout_free_buffers`), and the compiler's postprocessor
# lays those out along the loops of each schedule. Here the packing is split off the scheduled
# function again: a build folds it into the constants, and a candidate is timed without it.

ATTRIBUTE = "layout_free_buffers"
MAIN, PREPACK = "main", "prepack"
_ROOT = "root"


def mark_constants(module: Any) -> Any:
    """Returns a fused Relax module whose functions know their constant arguments."""
    copy = relax.transform.AttachAttrLayoutFreeBuffers()(module)
    for variable, function in list(copy.functions.items()):
        attributes = getattr(function, "attrs", None)
        if attributes and ATTRIBUTE in attributes and not len(attributes[ATTRIBUTE]):
            copy.update_func(variable, function.without_attr(ATTRIBUTE))
    return copy


def unmark_constants(workload: Workload) -> Workload:
    """Returns the function without marks on its constant arguments."""
    return canonical_workload(workload.module[MAIN].without_attr(ATTRIBUTE))


def fold_packing(module: Any) -> Any:
    """Returns a Relax module of scheduled functions with the packing of constants folded."""
    split = _split_kernels(module)
    folded_module = relax.transform.FoldConstant()(_fold(split, _Packing(split)))
    return relax.transform.DeadCodeElimination()(folded_module)


def _split_kernels(module: Any) -> Any:
    """Splits the packing of constants off each kernel, into a function of its own."""
    return relax.transform.SplitLayoutRewritePreproc()(_add_roots(module))


def _add_roots(module: Any) -> Any:
    """Returns the module with a root around each single-block kernel (as a scatter): the compiler's
    split needs one (split_layout_rewrite_preproc.cc)."""
    copy = tvm.IRModule(module.functions, attrs=module.attrs)
    for variable, function in module.functions.items():
        body = getattr(function, "body", None)
        if isinstance(body, SBlockRealize) and body.block.name_hint != _ROOT:
            root = SBlock([], [], [], _ROOT, body)
            copy.update_func(variable, function.with_body(SBlockRealize([], True, root)))
    return copy


class ArgumentSource(NamedTuple):
    """The source of an argument of the main function."""

    kind: Literal["argument", "packed"]
    place: int


class SplitKernel(NamedTuple):
    """A kernel and its packing. The arguments `packs` get a new layout, as buffers of the
    `packed_types`: by `moves`, one for each, or, if these are None, by the function `prepack` of
    `module`, which has `main`."""

    module: Any
    packs: tuple[int, ...]
    packed_types: tuple[Any, ...]
    sources: tuple[ArgumentSource, ...]
    moves: tuple[Move, ...] | None = None


def split_kernel(module: Any) -> SplitKernel:
    """Splits a scheduled function into the kernel and the packing of its constants."""
    main = module[MAIN]
    types = [_tensor_type(a) for a in ms.arg_info.ArgInfo.from_prim_func(main)]
    as_it_is = tuple(ArgumentSource("argument", index) for index in range(len(types)))
    if not main.attrs or ATTRIBUTE not in main.attrs:
        return SplitKernel(module, (), (), as_it_is)
    split = _split_kernels(_calling_function(main, types))
    calls, names = _wiring(split["run"])
    if len(calls) == 1:
        return SplitKernel(module, (), (), as_it_is)
    prepack, kernel = calls
    moves = moves_of(split[prepack.function])
    parts = {MAIN: split[kernel.function]}
    if moves is None:
        parts[PREPACK] = split[prepack.function]
    functions = {name: part.with_attr("global_symbol", name) for name, part in parts.items()}
    return SplitKernel(
        module=tvm.IRModule(functions),
        packs=tuple(names[argument].place for argument in prepack.arguments),
        packed_types=prepack.outputs,
        sources=(*(names[argument] for argument in kernel.arguments), as_it_is[-1]),
        moves=moves,
    )


class _Call(NamedTuple):
    function: Any
    arguments: tuple[Any, ...]
    outputs: tuple[Any, ...]


def _calling_function(main: Any, types: list[Any]) -> Any:
    """Returns a Relax function that calls the kernel: the compiler splits kernels where they are
    called."""
    builder = relax.BlockBuilder()
    kernel = builder.add_func(main.without_attr("global_symbol"), "kernel")
    variables = [relax.Var(f"p{index}", kind) for index, kind in enumerate(types[:-1])]
    with builder.function("run", variables):
        with builder.dataflow():
            output = builder.emit_output(relax.call_tir(kernel, variables, types[-1]))
        builder.emit_func_output(output)
    return builder.finalize()


def _wiring(run: Any) -> tuple[list[_Call], dict[Any, ArgumentSource]]:
    """Returns the calls of the function in order, and the source of each variable."""
    names: dict[Any, ArgumentSource] = {
        p: ArgumentSource("argument", i) for i, p in enumerate(run.params)
    }
    calls: list[_Call] = []
    for binding in run.body.blocks[0].bindings:
        value = binding.value
        if isinstance(value, relax.TupleGetItem):
            names[binding.var] = ArgumentSource("packed", int(value.index))
        elif isinstance(value, relax.Call):
            kind = binding.var.ty
            outputs = tuple(kind.fields) if hasattr(kind, "fields") else (kind,)
            calls.append(_Call(value.args[0], tuple(value.args[1].fields), outputs))
            names[binding.var] = ArgumentSource("packed", 0)
    return calls, names


def _tensor_type(argument: Any) -> Any:
    return relax.TensorType([int(n) for n in argument.shape], str(argument.dtype))
