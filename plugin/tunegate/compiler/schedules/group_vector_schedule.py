"""Grouped convolutions on CPUs where no record has a schedule for them.

The sums of a few neighbours along a row stay in registers, one vector of channels each, while the
window goes over them, and what follows the convolution is computed before they are written. Every
sum adds the same numbers in the same order as the function does as it is written.
"""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import Any, NamedTuple

from tvm.s_tir import Schedule

from tunegate.compiler.schedules.algorithm_variants import DIRECT, asked_algorithm
from tunegate.compiler.schedules.grouped_convolutions import (
    REGISTER,
    ChannelVectors,
    GroupVectors,
    divisors,
    group_vectors,
    vector_block,
)
from tunegate.compiler.schedules.parallel_loops import share_out
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED, inline_followers, with_unscheduled
from tunegate.compiler.schedules.vector_registers import vector_registers
from tunegate.compiler.targets import threads_of
from tunegate.tune.prior import VectorRegisters

_logger = logging.getLogger(__name__)

_MAIN = "main"
_SYMBOL = "global_symbol"
_MAX_SUMS, _MAX_SPANNING_SUMS = 14, 8
"""Registers of 512 bits for sums, of 32. Fewer where vectors span groups: those that were put in
order need registers too. Targets with less room have three quarters and a half of it."""
_MAX_ROWS = 16
_MAX_STEPS = 256
"""Steps of a window's row that are written out one by one."""


def with_group_vectors(module: Any, target: Any) -> Any:
    """The module, or a copy where it has such functions; what has a schedule is left alone."""
    return with_unscheduled(module, partial(_scheduled, target=target))


def _scheduled(function: Any, target: Any) -> Any | None:
    if asked_algorithm(function) == DIRECT:
        return None
    try:
        vectors = group_vectors(function)
        if vectors is None:
            return None
        most_sums = _most_sums(vector_registers(target), vectors)
        return _as_before(_of_vectors(vectors, most_sums, threads_of(target)), function)
    except Exception:
        _logger.info("a grouped convolution stays as it is", exc_info=True)
        return None


def _as_before(scheduled: Any, function: Any) -> Any:
    """The scheduled function with the name of the other, or without one."""
    symbol = (function.attrs or {}).get(_SYMBOL)
    named = scheduled.with_attr(_SYMBOL, symbol) if symbol else scheduled.without_attr(_SYMBOL)
    return named.with_attr(IS_SCHEDULED, True)


def _most_sums(has: VectorRegisters, vectors: GroupVectors) -> int:
    """The vectors of sums that stay in registers: where these are too few, every step waits for
    memory."""
    room = has.count * has.lanes // REGISTER
    most = min(_MAX_SPANNING_SUMS, room // 2) if vectors.groups else min(_MAX_SUMS, 3 * room // 4)
    registers = len(ChannelVectors(vectors.lanes, vectors.groups).pieces)
    return max(1, most // registers)


class _Tile(NamedTuple):
    """A tile of neighbours that are summed together: `columns` along a row, and `vectors`; `rows`
    after which the next vectors are taken."""

    columns: int
    vectors: int
    rows: int


def _of_vectors(vectors: GroupVectors, most_sums: int, threads: int) -> Any:
    schedule = Schedule(vectors.module)
    block = vector_block(schedule)
    tile = _tile(schedule, block, vectors, most_sums)
    _, rows, columns, channels, *window = schedule.get_loops(block)
    outer_rows, inner_rows = schedule.split(rows, [None, tile.rows])
    outer_columns, inner_columns = schedule.split(columns, [None, tile.columns])
    outer_channels, inner_channels = schedule.split(channels, [None, tile.vectors])
    images = schedule.get_producers(block)
    written = schedule.cache_write(block, 0, "global")
    inner = (inner_columns, inner_channels)
    schedule.reorder(outer_rows, outer_channels, inner_rows, outer_columns, *window, *inner)
    schedule.reverse_compute_at(written, outer_columns)
    inline_followers(schedule, written)
    _vectorize(schedule, written)
    _copy_padded(schedule, images, outer_channels if vectors.groups else None)
    _unroll(schedule, block, tile, vectors)
    share_out(schedule, block, threads, lanes=vectors.lanes)
    schedule.decompose_reduction(block, window[0])
    return schedule.mod[_MAIN]


def _tile(schedule: Any, block: Any, vectors: GroupVectors, most: int) -> _Tile:
    _, rows, columns, channels, *_ = (int(v.dom.extent) for v in schedule.get(block).iter_vars)
    along = _divisor(columns, most)
    several = 1 if vectors.groups else _divisor(channels, most // along)
    return _Tile(along, several, _divisor(rows, _MAX_ROWS))


def _divisor(number: int, most: int) -> int:
    return max(divisors(number, most))


def _vectorize(schedule: Any, block: Any) -> None:
    *_, columns, _ = schedule.get_loops(block)
    for loop in (columns, _in_vectors(schedule, block)):
        schedule.unroll(loop)


def _in_vectors(schedule: Any, block: Any) -> Any:
    """Vectorizes the innermost loop, and returns the loop over its vectors."""
    channels = schedule.get_loops(block)[-1]
    lanes = math.gcd(int(schedule.get(channels).extent), REGISTER)
    steps, inner = schedule.split(channels, [None, lanes])
    schedule.vectorize(inner)
    return steps


def _copy_padded(schedule: Any, images: list[Any], at: Any | None) -> None:
    """The padded image is a copy: of the channels of a vector, where it has groups of its own."""
    for image in images:
        if "layout_rewrite_preproc" in str(schedule.get(image).annotations):
            continue
        if at is not None:
            schedule.compute_at(image, at)
        _in_vectors(schedule, image)


def _unroll(schedule: Any, block: Any, tile: _Tile, vectors: GroupVectors) -> None:
    *_, row_of_window, columns, channels = schedule.get_loops(block)
    for loop in (columns, channels):
        schedule.unroll(loop)
    steps = tile.columns * int(schedule.get(row_of_window).extent)
    if vectors.groups and steps * _channels_in(schedule, block) <= _MAX_STEPS:
        schedule.unroll(row_of_window)


def _channels_in(schedule: Any, block: Any) -> int:
    weights = schedule.get(block).reads[1]
    return int(weights.region[-2].extent)
