"""Schedules products and convolutions so that their sums stay in registers.

What follows is computed before the sums are written, and constant weights are packed once, at build
time, in reading order. Every sum adds the same numbers in the same order as the function as
written.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from tvm.ir import TensorLoad
from tvm.tirx import BufferStore, IntImm, IterVar
from tvm_ffi import structural_walk

from tunegate.compiler.schedules import unscheduled
from tunegate.compiler.schedules.convolutions import PACKING, place_of_constant
from tunegate.compiler.schedules.grouped_convolutions import divisors
from tunegate.compiler.targets import threads_of, vector_registers
from tunegate.tune.prior import VectorRegisters

_MAX_ROWS = 16
"""Rows (or tiles of a matrix) after which the next channels follow; they stay in the cache."""


def with_product_tiles(module: Any, target: Any, leaves: Collection[str] = ()) -> Any:
    """Returns the module, or a changed copy if it has such functions. Scheduled functions and those
    named in `leaves` stay as they are."""
    schedule = partial(
        _schedule_product, registers=vector_registers(target), threads=threads_of(target)
    )
    return unscheduled.with_unscheduled(module, schedule, leaves)


def _schedule_product(function: Any, registers: VectorRegisters, threads: int) -> Any | None:
    tile = partial(_tile, registers=registers, threads=threads)
    new_function = unscheduled.with_changed_blocks(function, tile, only_sums=True)
    return None if new_function is None else new_function.with_attr(unscheduled.IS_SCHEDULED, True)


def _tile(schedule: Any, block: Any, registers: VectorRegisters, threads: int) -> bool:
    factors = two_factors(schedule, block)
    tile = None if factors is None else register_tile(factors.extents, factors.axes, registers)
    if factors is None or tile is None:
        return False
    if factors.constant:
        _pack(schedule, block, factors, tile)
    _copy_in_vectors(schedule, block, registers, threads)
    copy = schedule.cache_write(block, 0, "global")
    loops = _reorder(schedule, factors, tile)
    schedule.reverse_compute_at(copy, loops.innermost_tile)
    unscheduled.inline_followers(schedule, copy)
    *_, columns, lanes = schedule.get_loops(copy)
    if tile.columns > 1:
        schedule.unroll(columns)
    for each in (lanes, loops.lanes):
        vectors, inner = schedule.split(each, [None, registers.lanes])
        schedule.unroll(vectors)
        schedule.vectorize(inner)
    unscheduled.share_out(schedule, block, threads)
    schedule.decompose_reduction(block, factors.reduced[0])
    return True


def _pack(schedule: Any, block: Any, factors: TwoFactors, tile: RegisterTile) -> None:
    """Packs the second factor by tiles of channels."""
    axis, lanes = factors.last_axis, tile.lanes

    def pack_index(*at: Any) -> list[Any]:
        others = [*at[:axis], *at[axis + 1 :]]
        return [at[axis] // lanes, *others, at[axis] % lanes]

    copy = schedule.cache_read(block, factors.second, "global")
    schedule.transform_layout(block, ("read", factors.second), pack_index)
    for name, value in PACKING.items():
        schedule.annotate(copy, name, value)


def _copy_in_vectors(schedule: Any, block: Any, registers: VectorRegisters, threads: int) -> None:
    """Vectorizes the copy that pads an image, and drops a copy without padding."""
    for image in schedule.get_producers(block):
        body = schedule.get(image)
        last = body.iter_vars[-1].var
        if PACKING.keys() & dict(body.annotations).keys() or body.init is not None:
            continue
        if _is_plain_copy(body):
            schedule.compute_inline(image)
        elif all(last.same_as(each.region[-1].min) for each in (*body.reads, *body.writes)):
            inner = schedule.get_loops(image)[-1]
            if int(schedule.get(inner).extent) % registers.lanes == 0:
                schedule.vectorize(schedule.split(inner, [None, registers.lanes])[1])
                unscheduled.share_out(schedule, image, threads)


def _is_plain_copy(body: Any) -> bool:
    """Returns whether the copy pads nothing."""
    store = body.body
    if not isinstance(store, BufferStore) or not isinstance(store.value, TensorLoad):
        return False
    places = zip(store.indices, store.value.indices, strict=True)
    return all(write.same_as(read) for write, read in places)


class _Loops(NamedTuple):
    """`innermost_tile` is the innermost loop over tiles, `lanes` the one over a tile's channels."""

    innermost_tile: Any
    lanes: Any


def _reorder(schedule: Any, factors: TwoFactors, tile: RegisterTile) -> _Loops:
    """Moves the loops of a tile inside; all columns of a few rows come before the next channels."""
    *outer, last = factors.outer
    outer[tile.axis], columns = schedule.split(outer[tile.axis], [None, tile.columns])
    channels, lanes = schedule.split(last, [None, tile.lanes])
    *before, rows = outer[:-1] or outer
    after = outer[-1:] if len(outer) > 1 else []
    few = max(divisors(int(schedule.get(rows).extent), _MAX_ROWS))
    many, rows = schedule.split(rows, [None, few])
    order = (*before, many, channels, rows, *after, *factors.reduced, columns, lanes)
    schedule.reorder(*order)
    schedule.unroll(columns)
    return _Loops((rows, *after)[-1], lanes)


# Chooses how many sums of a product are in registers at once. A step of a tile of c columns and v
# vectors reads v vectors of one factor and c numbers of the other, and adds c x v vectors of
# products. So the tile whose sums fill the registers waits least for memory (Goto, van de Geijn:
# Anatomy of High-Performance Matrix Multiplication, TOMS 2008).

_MOST_VECTORS = 8
_OTHERS = 1
"""A register for the number that a vector is multiplied by."""
_FEW = 16
_VECTOR_READ = 1.5
"""The cost of reading a vector of weights relative to a number of the image, which is in the L1
cache."""


class RegisterTile(NamedTuple):
    """A tile of `columns` neighbours along `axis`, by `lanes` along the innermost axis."""

    axis: int
    columns: int
    lanes: int


def register_tile(
    extents: Sequence[int], axes: Sequence[int], registers: VectorRegisters
) -> RegisterTile | None:
    """The tile of an output with these extents that reads least for each sum. Its columns are along
    one of the `axes`, on which only one of the two factors lies. None where the innermost extent
    fills no register."""
    tiles = list(_tiles(extents, axes, registers))
    # Of equals that along the innermost axis, whose neighbours lie side by side.
    return max(tiles, key=lambda tile: (sums_per_read(tile, registers), tile.axis), default=None)


def _tiles(
    extents: Sequence[int], axes: Sequence[int], registers: VectorRegisters
) -> Iterator[RegisterTile]:
    for vectors in range(1, _MOST_VECTORS + 1):
        lanes = vectors * registers.lanes
        if extents[-1] % lanes:
            continue
        for axis in axes:
            for columns in range(1, most_columns(vectors, registers) + 1):
                if extents[axis] % columns == 0:
                    yield RegisterTile(axis, columns, lanes)


def most_columns(vectors: int, registers: VectorRegisters) -> int:
    """Returns the most columns whose sums fit in registers beside the weights. A CPU with few
    registers has no product of a vector and a number in memory: LLVM broadcasts each number to a
    register and, if only one vector uses it, adds there and spills the sum before."""
    if vectors == 1 and registers.count <= _FEW:
        return (registers.count - _OTHERS - vectors) // 2
    return (registers.count - _OTHERS) // vectors - 1


def sums_per_read(tile: RegisterTile, has: VectorRegisters) -> float:
    """Returns how much a tile adds for each number that it reads; more is faster."""
    vectors = tile.lanes // has.lanes
    return vectors * tile.columns / (_VECTOR_READ * vectors + tile.columns)


# Matches blocks that sum up products of two factors, only one of which has the output's innermost
# axis: matrix products, and convolutions with channels last.

_FLOAT32 = "float32"
_FACTORS = 2
_MIN_REDUCED = 4
"""Shorter sums are not worth it."""


class TwoFactors(NamedTuple):
    """`outer` are the loops over outputs with these `extents`, `reduced` the reduction loops. The
    read number `second` has the output's innermost axis on its `last_axis` and nothing on any of
    the `axes`; `constant` says whether it is a constant of the model."""

    outer: list[Any]
    reduced: list[Any]
    extents: list[int]
    axes: list[int]
    second: int
    last_axis: int
    constant: bool


def two_factors(schedule: Any, block: Any) -> TwoFactors | None:
    """Returns the factors of the block, None for any other block and unknown sizes."""
    # A sum of known extents, of enough terms.
    body, loops = schedule.get(block), schedule.get_loops(block)
    kinds = [int(variable.iter_type) for variable in body.iter_vars]
    if len(loops) != len(kinds) or set(kinds) != {IterVar.DataPar, IterVar.CommReduce}:
        return None
    extents = [schedule.get(loop).extent for loop in loops]
    if not all(isinstance(extent, IntImm) for extent in extents):
        return None
    outer = [n for n, kind in enumerate(kinds) if kind == IterVar.DataPar]
    reduced = [n for n, kind in enumerate(kinds) if kind != IterVar.DataPar]
    if len(outer) < _FACTORS or math.prod(int(extents[n]) for n in reduced) < _MIN_REDUCED:
        return None
    # One factor is read along the innermost axis of the output, and not along another one: it stays
    # in registers for several sums. It can be packed for that, or lies so in memory.
    outputs = [body.iter_vars[n].var for n in outer]
    second = _second(body, outputs[-1])
    if second is None:
        return None
    read = body.reads[second]
    is_constant = place_of_constant(schedule.mod["main"], read.source) is not None
    last_axis = next(n for n, each in enumerate(read.region) if outputs[-1].same_as(each.min))
    axes = [n for n, variable in enumerate(outputs[:-1]) if not _uses(read, variable)]
    if not axes or not (is_constant or last_axis == len(read.region) - 1):
        return None
    return TwoFactors(
        outer=[loops[n] for n in outer],
        reduced=[loops[n] for n in reduced],
        extents=[int(extents[n]) for n in outer],
        axes=axes,
        second=second,
        last_axis=last_axis,
        constant=is_constant,
    )


def _second(body: Any, last: Any) -> int | None:
    """Returns the index of the only read that has the innermost axis, unchanged."""
    reads, (write,) = list(body.reads), body.writes
    if len(reads) != _FACTORS or str(write.source.dtype) != _FLOAT32:
        return None
    having = [n for n, each in enumerate(reads) if _uses(each, last)]
    if len(having) != 1 or not last.same_as(write.region[-1].min):
        return None
    (place,) = having
    return place if sum(last.same_as(each.min) for each in reads[place].region) == 1 else None


def _uses(region: Any, variable: Any) -> bool:
    variables: list[Any] = []
    for each in region.region:
        structural_walk(each.min, [(type(variable), variables.append)])
    return any(variable.same_as(each) for each in variables)
