"""Products that a GPU's tensor cores compute: operands in float16 or TF32, sums in float32.

Which product a kernel computes, whether tensor cores are faster and in which tiles, and how weights
are packed for them; `tensor_core_kernel.py` writes the kernel. `wmma` is there on every card from
sm_70 on, with TF32 from sm_80 on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from tvm import tirx
from tvm.tirx import Var
from tvm_ffi import structural_walk

from tunegate.artifacts.candidates import FLOAT16, TFLOAT32
from tunegate.compiler.low_precision import product
from tunegate.tune.gpu_analysis import Card

_HALF, _FLOAT = "float16", "float32"
FRAGMENT: Final = 16
"""The rows and columns of what a warp multiplies at once."""
WARP: Final = 32
SKEW: Final = 8
"""Elements that a line in shared memory is longer, so that lines begin in different banks."""

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
        return FRAGMENT, FRAGMENT, self.depth

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
    if len(places) != 1 or not all(map(product.writes_own_place, blocks)):
        return None
    (at,) = places
    factors = product.factors_of(blocks[at])
    stages = product.stages_of(blocks[at], blocks[at + 1 :])
    if factors is None or stages is None:
        return None
    over, sum_loops = product.loops_of(blocks[at])
    in_left, in_right = ({*variables_of(factor)} for factor in factors)
    groups = {
        side: [each for each in over if (each.var in in_left, each.var in in_right) == side]
        for side in ((True, False), (False, True), (True, True))
    }
    # What is read at its only place does not say so.
    groups[True, True] += [
        each for each in over if each.var not in in_left | in_right and int(each.dom.extent) == 1
    ]
    depth_in_both = all(each.var in in_left & in_right for each in sum_loops)
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
        depth=_axes(sum_loops),
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


def _axes(variables: Sequence[Any]) -> Axes:
    extents = tuple(int(variable.dom.extent) for variable in variables)
    return Axes(tuple(variable.var for variable in variables), extents)


def variables_of(expression: Any) -> Iterator[Any]:
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
        return self.warps[0] * self.warps[1] * WARP

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
        operands = (self.rows + self.columns + 2 * SKEW) * (self.depth + SKEW)
        return self.factors.bytes * operands + 4 * math.prod(self.warps) * FRAGMENT * (
            self.own_columns + SKEW
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
    if min(matrices.rows.outer.size, matrices.columns.outer.size) < FRAGMENT:
        return False  # most of a tile would be zeros
    singles = _Units(card.lanes, _TERM_CYCLES, 4)
    cycles = min(_cycles(matrices, tile, card, singles) for tile in _TILES)
    if float32_ms is not None:
        cycles = float32_ms * _CYCLES_PER_MS
    return _own_cycles(matrices, tiles, card) < _CLEARLY * cycles


# The estimate is that of `gpu_analysis`, with its latencies: in each step the busiest unit, or what
# a block waits for. float32 is estimated by the same tiles, so that what both leave out cancels.
# Nothing was fitted, and base and head share it.

_CYCLES_PER_MS: Final = 1.5e6
"""A nominal clock of 1.5 GHz."""
_REACHED: Final = 0.6
"""The share that is reached of the tensor cores' rate, with operands in shared memory."""
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


def _cycles(matrices: MatrixProduct, tiles: Tiles, card: Card, units: _Units) -> float:
    blocks = math.prod(grid(matrices, tiles))
    steps = -(-matrices.depth.size // tiles.depth)
    threads = min(card.threads, _REGISTERS)
    by_memory = card.shared_bytes // tiles.shared_bytes
    resident = max(1, min(card.blocks, threads // tiles.threads, by_memory))
    loaded_bytes = (tiles.rows + tiles.columns) * tiles.depth * units.bytes
    read = math.prod(tiles.warps) * (tiles.own_rows + tiles.own_columns) * tiles.depth * units.bytes
    busy = max(
        tiles.rows * tiles.columns * tiles.depth / units.rate,
        loaded_bytes / (card.bytes_per_cycle * _CACHED),
        read / _SHARED_RATE,
    )
    waiting = _MEMORY_CYCLES + units.term_cycles * tiles.depth
    each = -(-blocks // card.processors)
    rounds = -(-each // resident)
    return _LAUNCH_CYCLES + rounds * steps * max(min(each, resident) * busy, waiting)


def grid(matrices: MatrixProduct, tiles: Tiles) -> tuple[int, int, int]:
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
        """Returns `weights`, the constant in its own shape, in `stored_shape` and the kind of
        the factors."""
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
    whole = product.round_up(sizes[0], high), product.round_up(sizes[1], tiles.depth)
    return PackedWeights(tuple(order), whole, sizes, operand is matrices.columns, tiles.factors)
