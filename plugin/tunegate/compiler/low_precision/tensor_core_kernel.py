"""The kernel of a product on a GPU's tensor cores, in the tiles that `tensor_cores.py` chose.

A block of threads computes a tile of the result by `wmma`, in steps along the sum. While tensor
cores multiply one step from shared memory, the threads load the next one into registers; it is
rounded on its way to shared memory. Sums go through shared memory once more, so that neighbouring
threads write neighbouring results, and the stages that follow (bias, ReLU) stay fused in float32.
A convolution is such a product too: its image is unfolded as it is loaded, and never stored so.
Edges are filled up with zeros.

TVM has no word for fragments of TF32: here they are those of float16 with a depth of 8, which
nothing else has, and the text of the kernel names them rightly (cuda_text.py). TVM could also write
`wgmma`, for the full rate of Hopper (`T.ptx`). No kernel here has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as T

from tunegate.compiler.low_precision import tensor_cores
from tunegate.compiler.low_precision.expressions import rewritten
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate.errors import UnsupportedModelError

_FRAGMENT, _WARP, _SKEW = tensor_cores.FRAGMENT, tensor_cores.WARP, tensor_cores.SKEW
_HALF, _FLOAT, _SHARED, _DYNAMIC = "float16", "float32", "shared", "shared.dyn"
_VECTOR_BYTES: Final = 16
_TO_TFLOAT32: Final = "nvcuda::wmma::__float_to_tf32"
_MAX_GRID: Final = 65_535


class Plan(NamedTuple):
    """A product to compute: parameter number `place` has the weights as `packing` makes them; None
    if both operands are rounded in the kernel."""

    product: tensor_cores.MatrixProduct
    tiles: tensor_cores.Tiles
    packing: tensor_cores.PackedWeights | None = None
    place: int | None = None


def tensor_core_kernel(function: Any, plan: Plan) -> Any:
    """Returns the function's kernel. Its buffers keep their shapes; packed weights have the
    `stored_shape` of `plan.packing`, and the kind of the factors. Raises UnsupportedModelError for
    what its loads or stages compute in an unknown way."""
    columns, rows, images = tensor_cores.grid(plan.product, plan.tiles)
    if any(str(stage.buffer.dtype) != _FLOAT for stage in plan.product.stages):
        message = "a stage makes no float32"
        raise UnsupportedModelError(message)
    if max(rows, images) > _MAX_GRID:
        message = "a product has more tiles than a launch has blocks"
        raise UnsupportedModelError(message)
    with IRBuilder() as builder, T.prim_func(is_private=True, s_tir=True):
        T.func_name("main")
        T.func_attr({"tirx.noalias": True, IS_SCHEDULED: True})
        weights = None
        for number, buffer in enumerate(function.params):
            is_packed = number == plan.place
            kind = plan.tiles.factors.kind
            parameter = (
                T.buffer(plan.packing.stored_shape, kind) if plan.packing and is_packed else buffer
            )
            argument = T.arg(f"p{number}", parameter)
            weights = argument if is_packed else weights
        with ExitStack() as launch:
            extents = {"blockIdx.x": columns, "blockIdx.y": rows, "blockIdx.z": images}
            block = [launch.enter_context(T.launch_thread(*item)) for item in extents.items()]
            thread = launch.enter_context(T.launch_thread("threadIdx.x", plan.tiles.threads))
            _Kernel(plan, weights, block, thread).emit()
    return builder.get()


class _Kernel:
    def __init__(self, plan: Plan, weights: Any, block: Sequence[Any], thread: Any) -> None:
        self.plan, self.weights, self.thread = plan, weights, thread
        tiles = plan.tiles
        column, row, image = block
        self._first = row * tiles.rows, column * tiles.columns
        self._images = plan.product.images.digits(image)
        self._warp, self._lane = tirx.floordiv(thread, _WARP), tirx.floormod(thread, _WARP)
        across = tiles.warps[1]
        self._own = (
            tirx.floordiv(self._warp, across) * tiles.own_rows,
            tirx.floormod(self._warp, across) * tiles.own_columns,
        )
        self._high, self._wide = tiles.own_rows // _FRAGMENT, tiles.own_columns // _FRAGMENT

    def replace_axes(self, load: Any, digits: Mapping[Any, Any]) -> Any:
        """Returns a load with its axes replaced."""
        return rewritten(load, {**self._images, **digits}, self._element)

    def _element(self, buffer: Any, indices: list[Any]) -> Any:
        """Returns a number of a buffer; that of a producer is computed in its place."""
        producer = self.plan.product.producers.get(buffer)
        if producer is None:
            return buffer[tuple(indices)]
        variables, value = producer
        return rewritten(value, dict(zip(variables, indices, strict=True)), self._element)

    def emit(self) -> None:
        product, tiles = self.plan.product, self.plan.tiles
        left = _Tile(self, product.rows, tiles.rows, self._first[0])
        right = _Tile(self, product.columns, tiles.columns, self._first[1])
        factors, count = tiles.factors, self._high * self._wide
        size = _FRAGMENT * factors.depth
        self._a = T.alloc_buffer((self._high * size,), _HALF, scope="wmma.matrix_a")
        self._b = T.alloc_buffer((self._wide * size,), _HALF, scope="wmma.matrix_b")
        sums = count * _FRAGMENT * _FRAGMENT
        self._sums = T.alloc_buffer((sums,), _FLOAT, scope="wmma.accumulator")
        for number in range(count):
            zero = tirx.const(0, _FLOAT)
            T.evaluate(T.tvm_fill_fragment(self._sums.data, *factors.shape, number, zero))
        steps = -(-product.depth.size // tiles.depth)
        left.load(0)
        right.load(0)
        with T.serial(steps) as step:
            left.keep()
            right.keep()
            T.evaluate(T.tvm_storage_sync(_SHARED))
            with T.If(step + 1 < steps), T.Then():
                left.load(step + 1)
                right.load(step + 1)
            with T.unroll(tiles.depth // factors.depth) as inner:
                self._multiply(left, right, inner * factors.depth)
            T.evaluate(T.tvm_storage_sync(_SHARED))
        self._store()

    def _multiply(self, left: _Tile, right: _Tile, depth: Any) -> None:
        """Emits the products of a warp's fragments at one depth."""
        for row in range(self._high):
            left.load_fragment(self._a, row, self._own[0] + row * _FRAGMENT, depth)
        for column in range(self._wide):
            right.load_fragment(self._b, column, self._own[1] + column * _FRAGMENT, depth)
        sums = self._sums.data
        for row in range(self._high):
            for column in range(self._wide):
                number = row * self._wide + column
                factors = self._a.data, row, self._b.data, column
                T.evaluate(T.tvm_mma_sync(sums, number, *factors, sums, number))

    def _store(self) -> None:
        """Emits the results, 16 rows of a warp at a time."""
        product, wide = self.plan.product, self.plan.tiles.own_columns
        line = wide + _SKEW
        first = self._warp * (_FRAGMENT * line)
        # Of another scope: else TVM reuses an operand's memory, and fails because of its type.
        size = math.prod(self.plan.tiles.warps) * _FRAGMENT * line
        line_buffer = T.alloc_buffer((size,), _FLOAT, scope=_DYNAMIC)
        values = T.alloc_buffer((len(product.stages) + 1,), _FLOAT, scope="local")
        edges = zip((product.rows, product.columns), self._first, self._own, strict=True)
        (high_limit, *high_at), (wide_limit, *wide_at) = (
            (operand.outer.size, first, own) for operand, first, own in edges
        )
        for row in range(self._high):
            for column in range(self._wide):
                at = line_buffer.access_ptr("w", offset=first + column * _FRAGMENT)
                number = row * self._wide + column
                shape = self.plan.tiles.factors.shape
                where = self._sums.data, *shape, number, at, line, "row_major"
                T.evaluate(T.tvm_store_matrix_sync(*where))
            T.evaluate(T.tvm_storage_sync(_DYNAMIC))
            with T.unroll(_FRAGMENT * wide // _WARP) as number:
                flat = number * _WARP + self._lane
                high, across = tirx.floordiv(flat, wide), tirx.floormod(flat, wide)
                places = sum(high_at) + row * _FRAGMENT + high, sum(wide_at) + across
                total = line_buffer[first + high * line + across]
                inside = tirx.all(places[0] < high_limit, places[1] < wide_limit)
                with T.If(inside), T.Then():
                    self._finish(places, total, values)
            T.evaluate(T.tvm_storage_sync(_DYNAMIC))

    def _finish(self, places: tuple[Any, Any], total: Any, values: Any) -> None:
        """Emits one result through all stages."""
        product = self.plan.product
        of_rows, of_columns = product.rows.outer.digits(places[0]), product.columns.outer
        digits = {**self._images, **of_rows, **of_columns.digits(places[1])}
        indices = [digits[variable] for variable in product.order]
        T.buffer_store(values, total, [0])
        values_of = {product.sums: values[0]}

        def load(buffer: Any, at: list[Any]) -> Any:
            return values_of[buffer] if buffer in values_of else self._element(buffer, at)

        for number, stage in enumerate(product.stages, start=1):
            variables = dict(zip(stage.variables, indices, strict=True))
            # A named value would be inlined at each use.
            T.buffer_store(values, rewritten(stage.value, variables, load), [number])
            values_of[stage.buffer] = values[number]
        T.buffer_store(product.result, values[len(product.stages)], indices)


class _Tile:
    """A tile of one operand: how threads load it, and where it lies in shared memory. Its lines run
    along the sum, or across it, as its numbers do in memory: neighbours are loaded together."""

    def __init__(
        self, kernel: _Kernel, operand: tensor_cores.Operand, high: int, first: Any
    ) -> None:
        self._kernel, self._operand, self._high, self._first = kernel, operand, high, first
        product, tiles, packing, place = kernel.plan
        self._depth, self._threads = tiles.depth, tiles.threads
        self._is_rows = operand is product.rows
        self._is_packed = packing is not None and operand.parameter == place
        self._runs_along = self._is_rows if self._is_packed else not _runs_across(operand)
        self._line = (tiles.depth if self._runs_along else high) + _SKEW
        lines = high if self._runs_along else tiles.depth
        self._factors = tiles.factors
        self._shared = T.alloc_buffer((lines * self._line,), self._factors.kind, scope=_SHARED)
        self._kind = self._factors.kind if self._is_packed else _FLOAT
        axes = product.depth if self._runs_along else operand.outer
        are_whole = self._is_packed or _are_vectors(operand, axes, product)
        size = self._factors.bytes if self._is_packed else 4
        self._lanes = _VECTOR_BYTES // size if are_whole else 1
        self._count = high * tiles.depth // (tiles.threads * self._lanes)
        self._held = T.alloc_buffer((self._count * self._lanes,), self._kind, scope="local")

    def load(self, step: Any) -> None:
        """Emits the loads of one step into registers."""
        outer_size, depth_size = self._operand.outer.size, self._kernel.plan.product.depth.size
        with T.unroll(self._count) as number:
            outer, depth = self._swap(*self._places(number))
            outer, depth = self._first + outer, step * self._depth + depth
            if self._is_packed:
                self._hold(number, lambda lane: self._value(outer, depth, lane))
                return
            with T.If(tirx.all(outer < outer_size, depth < depth_size)):
                with T.Then():
                    self._hold(number, lambda lane: self._value(outer, depth, lane))
                with T.Else():
                    self._hold(number, lambda lane: tirx.const(0, self._kind))

    def keep(self) -> None:
        """Emits the rounding of what was loaded, into shared memory."""
        kind = self._factors.kind
        with T.unroll(self._count) as number:
            line, at = self._places(number)
            if kind == _FLOAT and not self._is_packed:
                self._round(number)
            with T.vectorized(self._lanes) as lane:
                value = self._held[number * self._lanes + lane]
                factor = value if self._kind == kind else tirx.Cast(kind, value)
                T.buffer_store(self._shared, factor, [line * self._line + at + lane])

    def _round(self, number: Any) -> None:
        """Emits the rounding of a vector to TF32, in registers: a function takes one number."""
        with T.unroll(self._lanes) as lane:
            at = number * self._lanes + lane
            value = tirx.call_pure_extern(_FLOAT, _TO_TFLOAT32, self._held[at])
            T.buffer_store(self._held, value, [at])

    def load_fragment(self, fragments: Any, number: int, outer: Any, depth: Any) -> None:
        line, at = self._swap(outer, depth)
        address = self._shared.access_ptr("r", offset=line * self._line + at)
        layout = "row_major" if self._runs_along == self._is_rows else "col_major"
        where = fragments.data, *self._factors.shape, number, address, self._line, layout
        T.evaluate(T.tvm_load_matrix_sync(*where))

    def _places(self, number: Any) -> tuple[Any, Any]:
        """Returns the line and the place in it of a thread's vector."""
        flat = (number * self._threads + self._kernel.thread) * self._lanes
        run = self._line - _SKEW
        return tirx.floordiv(flat, run), tirx.floormod(flat, run)

    def _swap(self, one: Any, other: Any) -> tuple[Any, Any]:
        """Turns (line, place in it) into (outer, depth), and back."""
        return (one, other) if self._runs_along else (other, one)

    def _hold(self, number: Any, value: Callable[[Any], Any]) -> None:
        with T.vectorized(self._lanes) as lane:
            T.buffer_store(self._held, value(lane), [number * self._lanes + lane])

    def _value(self, outer: Any, depth: Any, lane: Any) -> Any:
        """Returns a number of a vector, whose lanes are neighbours in a line."""
        outer, depth = (outer, depth + lane) if self._runs_along else (outer + lane, depth)
        if self._is_packed:
            return self._kernel.weights[(outer, depth) if self._is_rows else (depth, outer)]
        of_depth = self._kernel.plan.product.depth.digits(depth)
        return self._kernel.replace_axes(
            self._operand.load, {**self._operand.outer.digits(outer), **of_depth}
        )


def _runs_across(operand: tensor_cores.Operand) -> bool:
    """Returns whether neighbours in memory are neighbours across the sum."""
    return any(
        variable.same_as(operand.outer.variables[-1])
        for variable in tensor_cores.variables_of(operand.load.indices[-1])
    )


def _are_vectors(
    operand: tensor_cores.Operand, axes: tensor_cores.Axes, product: tensor_cores.MatrixProduct
) -> bool:
    """Returns whether four neighbours along the axes are one load: aligned, and without a
    border."""
    load, variable = operand.load, axes.variables[-1]
    lanes = _VECTOR_BYTES // 4
    return (
        load.source not in product.producers
        and bool(load.indices[-1].same_as(variable))
        and not axes.extents[-1] % lanes
        and not int(load.source.shape[-1]) % lanes
        and not any(
            v.same_as(variable)
            for each in [*load.indices][:-1]
            for v in tensor_cores.variables_of(each)
        )
    )
