"""Products and convolutions whose sums stay in registers, where no record has a schedule for them.

What follows is computed before the sums are written, and constant weights are packed in the order
in which they are read, once, when a model is built. Every sum adds the same numbers in the same
order as the function does as it is written.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any, NamedTuple

from tvm.ir import TensorLoad
from tvm.tirx import BufferStore

from tunegate.cost_model.experience import VectorRegisters
from tunegate.edges.metaschedule.passes.inlined_followers import inline_followers
from tunegate.edges.metaschedule.passes.parallel_loops import share_out
from tunegate.edges.metaschedule.passes.register_tile import RegisterTile, register_tile
from tunegate.edges.metaschedule.passes.two_factors import TwoFactors, two_factors
from tunegate.edges.metaschedule.passes.unscheduled import (
    IS_SCHEDULED,
    with_changed_blocks,
    with_unscheduled,
)
from tunegate.edges.metaschedule.targets import threads_of
from tunegate.edges.metaschedule.variants.channel_vectors import divisors
from tunegate.edges.metaschedule.variants.group_vectors import PACKING
from tunegate.edges.metaschedule.variants.vector_registers import vector_registers

_MAX_ROWS = 16
"""Rows, or tiles of a matrix, after which the next channels are taken: those stay in the cache."""


def with_product_tiles(module: Any, target: Any, leaves: Collection[str] = ()) -> Any:
    """The module, or a copy where it has such functions; what has a schedule, or one of the names
    that it `leaves`, is left alone."""
    tiled = partial(_tiled, has=vector_registers(target), threads=threads_of(target))
    return with_unscheduled(module, tiled, leaves)


def _tiled(function: Any, has: VectorRegisters, threads: int) -> Any | None:
    tile = partial(_tile, has=has, threads=threads)
    changed = with_changed_blocks(function, tile, only_sums=True)
    return None if changed is None else changed.with_attr(IS_SCHEDULED, True)


def _tile(schedule: Any, block: Any, has: VectorRegisters, threads: int) -> bool:
    factors = two_factors(schedule, block)
    tile = None if factors is None else register_tile(factors.extents, factors.axes, has)
    if factors is None or tile is None:
        return False
    if factors.constant:
        _pack(schedule, block, factors, tile)
    _copy_in_vectors(schedule, block, has, threads)
    written = schedule.cache_write(block, 0, "global")
    loops = _reordered(schedule, factors, tile)
    schedule.reverse_compute_at(written, loops.innermost_tile)
    inline_followers(schedule, written)
    *_, columns, lanes = schedule.get_loops(written)
    if tile.columns > 1:
        schedule.unroll(columns)
    for each in (lanes, loops.lanes):
        vectors, inner = schedule.split(each, [None, has.lanes])
        schedule.unroll(vectors)
        schedule.vectorize(inner)
    share_out(schedule, block, threads)
    schedule.decompose_reduction(block, factors.reduced[0])
    return True


def _pack(schedule: Any, block: Any, factors: TwoFactors, tile: RegisterTile) -> None:
    """Lays the second factor out by tiles of channels."""
    axis, lanes = factors.last_axis, tile.lanes

    def packed(*at: Any) -> list[Any]:
        others = [*at[:axis], *at[axis + 1 :]]
        return [at[axis] // lanes, *others, at[axis] % lanes]

    copied = schedule.cache_read(block, factors.second, "global")
    schedule.transform_layout(block, ("read", factors.second), packed)
    for name, value in PACKING.items():
        schedule.annotate(copied, name, value)


def _copy_in_vectors(schedule: Any, block: Any, has: VectorRegisters, threads: int) -> None:
    """Makes the copy that pads an image by vectors; one that pads by nothing is none."""
    for image in schedule.get_producers(block):
        body = schedule.get(image)
        last = body.iter_vars[-1].var
        if PACKING.keys() & dict(body.annotations).keys() or body.init is not None:
            continue
        if _is_plain_copy(body):
            schedule.compute_inline(image)
        elif all(last.same_as(each.region[-1].min) for each in (*body.reads, *body.writes)):
            inner = schedule.get_loops(image)[-1]
            if int(schedule.get(inner).extent) % has.lanes == 0:
                schedule.vectorize(schedule.split(inner, [None, has.lanes])[1])
                share_out(schedule, image, threads)


def _is_plain_copy(body: Any) -> bool:
    """Returns whether the image is padded by nothing."""
    store = body.body
    if not isinstance(store, BufferStore) or not isinstance(store.value, TensorLoad):
        return False
    places = zip(store.indices, store.value.indices, strict=True)
    return all(written.same_as(read) for written, read in places)


class _Loops(NamedTuple):
    """`innermost_tile` is the innermost loop over tiles, `lanes` is over the channels of one."""

    innermost_tile: Any
    lanes: Any


def _reordered(schedule: Any, factors: TwoFactors, tile: RegisterTile) -> _Loops:
    """Puts the loops of a tile inside; of a few rows all columns come before the next channels."""
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
