"""Products on a GPU's tensor cores: operands in float16 or TF32, sums in float32.

A block of threads computes a tile of the result by `wmma`, in steps along the sum. While tensor
cores multiply one step from shared memory, the threads load the next one into registers; it is
rounded on its way to shared memory. Sums go through shared memory once more, so that neighbouring
threads write neighbouring results, and the stages that follow (bias, ReLU) stay fused in float32.
A convolution is such a product too: its image is unfolded as it is loaded, and never stored so.
Edges are filled up with zeros.

`wmma` is there on every card from sm_70 on, with TF32 from sm_80 on. TVM has no word for fragments
of TF32: here they are those of float16 with a depth of 8, which nothing else has, and the text of
the kernel names them rightly (cuda_text.py). TVM could also write `wgmma`, for the full rate of
Hopper (`T.ptx`). No kernel here has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx import Var
from tvm.tirx.script.builder import ir as T
from tvm_ffi import structural_walk

from tunegate.artifacts.candidates import FLOAT16, TFLOAT32
from tunegate.compiler.low_precision import product
from tunegate.compiler.low_precision.expressions import rewritten
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate.errors import UnsupportedModelError
from tunegate.tune.gpu_analysis import Card

_HALF, _FLOAT, _SHARED, _DYNAMIC = "float16", "float32", "shared", "shared.dyn"
_FRAGMENT: Final = 16
"""The rows and columns of what a warp multiplies at once."""
_WARP: Final = 32
_SKEW: Final = 8
"""Elements that a line in shared memory is longer, so that lines begin in different banks."""
_VECTOR_BYTES: Final = 16
_TO_TFLOAT32: Final = "nvcuda::wmma::__float_to_tf32"
_MAX_GRID: Final = 65_535

# What is multiplied.


class Factors(NamedTuple):
    """The numbers that tensor cores multiply, on cards from `least_capability` on. They are stored
    as `kind` and up to `most`; a warp takes `depth` of each at once. `multiply` is the instruction,
    whose number goes up with every change of these kernels."""

    least_capability: int
    kind: str
    most: float
    depth: int
    multiply: str

    @property
    def bytes(self) -> int:
        return np.dtype(self.kind).itemsize

    @property
    def shape(self) -> tuple[int, int, int]:
        return _FRAGMENT, _FRAGMENT, self.depth

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """Returns float32 numbers, rounded."""
        if self.kind == _HALF:
            return numbers.astype(_HALF)
        bits = np.ascontiguousarray(numbers).view(np.uint32)
        return ((bits + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)).view(np.float32)


FACTORS: Final = {
    FLOAT16: Factors(70, _HALF, 65_504.0, 16, "wmma 1"),
    TFLOAT32: Factors(80, _FLOAT, (2 - 2**-10) * 2.0**127, 8, "wmma tf32 1"),
}
"""By the precision of a candidate. The largest TF32 has 10 bits of mantissa."""


# The product of a kernel, as matrices.


class Axes(NamedTuple):
    """Axes of the sum that are one dimension of a matrix, the innermost last."""

    variables: tuple[Any, ...]
    extents: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.extents)

    def digits(self, place: Any) -> dict[Any, Any]:
        """Returns the value of each variable at a place of the dimension."""
        digit_of: dict[Any, Any] = {}
        for number, (variable, extent) in enumerate(zip(self.variables, self.extents, strict=True)):
            inside = math.prod(self.extents[number + 1 :])
            digit = tirx.floordiv(place, inside) if inside > 1 else place
            digit = tirx.floormod(digit, extent) if number else digit
            digit_of[variable] = tirx.Cast(variable.ty.dtype, digit)
        return digit_of


class Operand(NamedTuple):
    """A matrix (outer, depth): what is loaded, and its parameter's number if it is one."""

    load: Any
    outer: Axes
    parameter: int | None


class MatrixProduct(NamedTuple):
    """For each of `images`, `rows: (m, k)` times `columns: (n, k)` transposed, with sums (m, n) in
    float32; k is `depth`. `producers` are the values of buffers that are computed as they are
    loaded, over variables."""

    rows: Operand
    columns: Operand
    depth: Axes
    images: Axes
    order: tuple[Any, ...]
    sums: Any
    stages: tuple[product.Stage, ...]
    producers: dict[Any, tuple[tuple[Any, ...], Any]]

    @property
    def result(self) -> Any:
        return self.stages[-1].buffer if self.stages else self.sums


def matrix_product(function: Any) -> MatrixProduct | None:
    """Returns the product that the kernel computes; None if it computes anything else."""
    blocks = [*product.blocks_of(function)]
    places = [at for at, block in enumerate(blocks) if product.loops_of(block)[1]]
    if len(places) != 1 or not all(map(_writes_its_own_place, blocks)):
        return None
    (at,) = places
    factors = product.factors_of(blocks[at])
    stages = product.stages_of(blocks[at], blocks[at + 1 :])
    if factors is None or stages is None:
        return None
    over, summed = product.loops_of(blocks[at])
    in_left, in_right = ({*_variables(factor)} for factor in factors)
    groups = {
        side: [each for each in over if (each.var in in_left, each.var in in_right) == side]
        for side in ((True, False), (False, True), (True, True))
    }
    # What is read at its only place does not say so.
    groups[True, True] += [
        each for each in over if each.var not in in_left | in_right and int(each.dom.extent) == 1
    ]
    depth_in_both = all(each.var in in_left & in_right for each in summed)
    are_known = sum(map(len, groups.values())) == len(over)
    have_axes = groups[True, False] and groups[False, True]
    if not (are_known and have_axes and depth_in_both) or over[-1] in groups[True, True]:
        return None
    parameters = [*function.params]
    operands = [
        Operand(load, _axes(groups[side]), _number_of(load.source, parameters))
        for load, side in zip(factors, ((True, False), (False, True)), strict=True)
    ]
    # The innermost axis of the result belongs to the columns: neighbours are written together.
    if over[-1] in groups[True, False]:
        operands.reverse()
    matrices = MatrixProduct(
        rows=operands[0],
        columns=operands[1],
        depth=_axes(summed),
        images=_axes(groups[True, True]),
        order=tuple(each.var for each in over),
        sums=blocks[at].body.buffer,
        stages=stages,
        producers={
            block.body.buffer: (tuple(v.var for v in block.iter_vars), block.body.value)
            for block in blocks[:at]
        },
    )
    return matrices if _number_of(matrices.result, parameters) is not None else None


def _writes_its_own_place(block: Any) -> bool:
    variables = [each.var for each in product.loops_of(block)[0]]
    written = block.body.indices
    return len(written) == len(variables) and all(
        index.same_as(variable) for index, variable in zip(written, variables, strict=True)
    )


def _axes(variables: Sequence[Any]) -> Axes:
    extents = tuple(int(variable.dom.extent) for variable in variables)
    return Axes(tuple(variable.var for variable in variables), extents)


def _variables(expression: Any) -> Iterator[Any]:
    variables: list[Any] = []
    structural_walk(expression, [(Var, variables.append)])
    yield from variables


def _number_of(buffer: Any, buffers: Sequence[Any]) -> int | None:
    return next((n for n, each in enumerate(buffers) if each.same_as(buffer)), None)


# The tiles of a block, chosen by an estimate of their time.


class Tiles(NamedTuple):
    """The tile that a block of threads computes in each step, and the warps that share it."""

    rows: int
    columns: int
    depth: int
    warps: tuple[int, int]
    factors: Factors = FACTORS[FLOAT16]

    @property
    def threads(self) -> int:
        return self.warps[0] * self.warps[1] * _WARP

    @property
    def own_rows(self) -> int:
        """The rows of a warp."""
        return self.rows // self.warps[0]

    @property
    def own_columns(self) -> int:
        return self.columns // self.warps[1]

    @property
    def shared_bytes(self) -> int:
        """The shared memory of a block, which is below what every card has."""
        operands = (self.rows + self.columns + 2 * _SKEW) * (self.depth + _SKEW)
        return self.factors.bytes * operands + 4 * math.prod(self.warps) * _FRAGMENT * (
            self.own_columns + _SKEW
        )


_TILES: Final = (
    Tiles(32, 32, 64, (2, 2)),
    Tiles(32, 64, 64, (2, 2)),
    Tiles(64, 32, 64, (2, 2)),
    Tiles(64, 64, 32, (2, 2)),
    Tiles(64, 128, 32, (2, 2)),
    Tiles(128, 64, 32, (2, 2)),
    Tiles(128, 128, 32, (2, 4)),
)


TILES: Final = {
    precision: tuple(
        tiles._replace(depth=2 * tiles.depth // factors.bytes, factors=factors) for tiles in _TILES
    )
    for precision, factors in FACTORS.items()
}
"""For each precision."""


def best_tiles(matrices: MatrixProduct, card: Card, precision: str) -> Tiles:
    """Returns the tiles of the least estimate."""
    return min(TILES[precision], key=lambda tiles: _own_cycles(matrices, tiles, card))


def is_faster(matrices: MatrixProduct, tiles: Tiles, card: Card, float32_ms: float | None) -> bool:
    """Returns whether tensor cores are clearly faster than float32, which took `float32_ms` (None:
    not measured)."""
    if min(matrices.rows.outer.size, matrices.columns.outer.size) < _FRAGMENT:
        return False  # most of a tile would be zeros
    cycles = min(_cycles(matrices, tile, card, _singles(card)) for tile in _TILES)
    if float32_ms is not None:
        cycles = float32_ms * _CYCLES_PER_MS
    return _own_cycles(matrices, tiles, card) < _CLEARLY * cycles


# The estimate is that of `gpu_analysis`, with its latencies: in each step the busiest unit, or what
# a block waits for. float32 is estimated by the same tiles, so that what both leave out cancels.
# Nothing was fitted, and base and head share it.

_CYCLES_PER_MS: Final = 1.5e6
"""A nominal clock of 1.5 GHz."""
_REACHED: Final = 0.6
"""What is reached of the tensor cores' rate, with operands in shared memory."""
_PRODUCT_CYCLES: Final = 35.0
"""The latency of a warp's product of two fragments."""
_TERM_CYCLES: Final = 25.0
"""The latency of one term of a float32 sum: a load from shared memory."""
_MEMORY_CYCLES: Final = 500.0
_LAUNCH_CYCLES: Final = 1500.0
_CACHED: Final = 2.5
_SHARED_RATE: Final = 128
"""The bytes that shared memory gives a multiprocessor in a cycle."""
_REGISTERS: Final = 65_536 // 128
"""The threads that a multiprocessor holds, if each has as many registers as these kernels take."""
_CLEARLY: Final = 0.9


class _Units(NamedTuple):
    """Multiply-adds of a multiprocessor in a cycle, the cycles that a warp waits for one term of
    its sums, and the bytes of a number."""

    rate: float
    term_cycles: float
    bytes: int


def _own_cycles(matrices: MatrixProduct, tiles: Tiles, card: Card) -> float:
    """Returns the estimate on tensor cores; they multiply half as many numbers of twice the
    size."""
    size = tiles.factors.bytes
    rate = card.tensor_lanes * _REACHED * 2 / size
    units = _Units(rate, _PRODUCT_CYCLES / tiles.factors.depth, size)
    return _cycles(matrices, tiles, card, units)


def _singles(card: Card) -> _Units:
    return _Units(card.lanes, _TERM_CYCLES, 4)


def _cycles(matrices: MatrixProduct, tiles: Tiles, card: Card, units: _Units) -> float:
    blocks = math.prod(_grid(matrices, tiles))
    steps = -(-matrices.depth.size // tiles.depth)
    threads = min(card.threads, _REGISTERS)
    by_memory = card.shared_bytes // tiles.shared_bytes
    resident = max(1, min(card.blocks, threads // tiles.threads, by_memory))
    moved = (tiles.rows + tiles.columns) * tiles.depth * units.bytes
    read = math.prod(tiles.warps) * (tiles.own_rows + tiles.own_columns) * tiles.depth * units.bytes
    busy = max(
        tiles.rows * tiles.columns * tiles.depth / units.rate,
        moved / (card.bytes_per_cycle * _CACHED),
        read / _SHARED_RATE,
    )
    waiting = _MEMORY_CYCLES + units.term_cycles * tiles.depth
    each = -(-blocks // card.processors)
    rounds = -(-each // resident)
    return _LAUNCH_CYCLES + rounds * steps * max(min(each, resident) * busy, waiting)


def _grid(matrices: MatrixProduct, tiles: Tiles) -> tuple[int, int, int]:
    """Returns the blocks of a launch: along the columns, the rows and the images."""
    return (
        -(-matrices.columns.outer.size // tiles.columns),
        -(-matrices.rows.outer.size // tiles.rows),
        matrices.images.size,
    )


# Weights are rounded at build time, into whole tiles.


class PackedWeights(NamedTuple):
    """Weights of `operand`, rounded and filled up with zeros: (outer, depth) for the rows,
    (depth, outer) for the columns. `order` are the axes of the constant in that of the operand."""

    order: tuple[int, ...]
    shape: tuple[int, int]
    sizes: tuple[int, int]
    is_turned: bool
    factors: Factors

    @property
    def stored_shape(self) -> tuple[int, int]:
        """The shape of the packed constant."""
        return self.shape[::-1] if self.is_turned else self.shape

    def pack(self, weights: np.ndarray) -> np.ndarray:
        """Returns `weights`, the constant in its own shape, as `stored`: of the kind of the
        factors."""
        matrix = weights.transpose(self.order).reshape(self.sizes)
        whole = np.zeros(self.shape, self.factors.kind)
        whole[: self.sizes[0], : self.sizes[1]] = self.factors.of(matrix)
        return np.ascontiguousarray(whole.T) if self.is_turned else whole


def packed_weights(matrices: MatrixProduct, operand: Operand, tiles: Tiles) -> PackedWeights | None:
    """Returns how to pack a constant operand, None if its indices are not plain axes."""
    variables = [*operand.outer.variables, *matrices.depth.variables]
    indices = [*operand.load.indices]
    order = [next((n for n, each in enumerate(indices) if each.same_as(v)), -1) for v in variables]
    if sorted(order) != [*range(len(indices))]:
        return None
    shape = [int(extent) for extent in operand.load.source.shape]
    extents = (*operand.outer.extents, *matrices.depth.extents)
    if tuple(shape[n] for n in order) != extents:
        return None
    high = tiles.rows if operand is matrices.rows else tiles.columns
    sizes = operand.outer.size, matrices.depth.size
    whole = _round_up(sizes[0], high), _round_up(sizes[1], tiles.depth)
    return PackedWeights(tuple(order), whole, sizes, operand is matrices.columns, tiles.factors)


def _round_up(number: int, of: int) -> int:
    return -(-number // of) * of


# The kernel.


class Plan(NamedTuple):
    """A product to compute: parameter number `place` has the weights as `packed` makes them;
    None if both operands are rounded in the kernel."""

    product: MatrixProduct
    tiles: Tiles
    packed: PackedWeights | None = None
    place: int | None = None


def tensor_core_kernel(function: Any, plan: Plan) -> Any:
    """Returns the function's kernel: its buffers in their own shapes, but for the packed weights,
    which are `plan.packed.stored` of the kind of the factors. Raises UnsupportedModelError for what
    its loads or stages compute in an unknown way."""
    columns, rows, images = _grid(plan.product, plan.tiles)
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
                T.buffer(plan.packed.stored_shape, kind) if plan.packed and is_packed else buffer
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

    def __init__(self, kernel: _Kernel, operand: Operand, high: int, first: Any) -> None:
        self._kernel, self._operand, self._high, self._first = kernel, operand, high, first
        product, tiles, packed, place = kernel.plan
        self._depth, self._threads = tiles.depth, tiles.threads
        self._is_rows = operand is product.rows
        self._is_packed = packed is not None and operand.parameter == place
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
                stored = value if self._kind == kind else tirx.Cast(kind, value)
                T.buffer_store(self._shared, stored, [line * self._line + at + lane])

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


def _runs_across(operand: Operand) -> bool:
    """Returns whether neighbours in memory are neighbours across the sum."""
    return any(
        variable.same_as(operand.outer.variables[-1])
        for variable in _variables(operand.load.indices[-1])
    )


def _are_vectors(operand: Operand, axes: Axes, product: MatrixProduct) -> bool:
    """Returns whether four neighbours along the axes are one load: aligned, and without a
    border."""
    load, variable = operand.load, axes.variables[-1]
    lanes = _VECTOR_BYTES // 4
    return (
        load.source not in product.producers
        and bool(load.indices[-1].same_as(variable))
        and not axes.extents[-1] % lanes
        and not int(load.source.shape[-1]) % lanes
        and not any(v.same_as(variable) for each in [*load.indices][:-1] for v in _variables(each))
    )
