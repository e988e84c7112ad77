"""Sums and other reductions, several neighbours at a time, where no record has a schedule for them.

As they are written, one number is summed up after the other: each addition waits for the one
before, and every partial sum goes to memory. LLVM may not change that order. Here some neighbours
along the innermost axis are summed up together, in registers. Each of them adds the same numbers in
the same order as before, so that all results stay the same to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import tvm
from tvm.tirx import IntImm, IterVar

from tunegate.edges.metaschedule.passes.parallel_loops import share_out
from tunegate.edges.metaschedule.passes.unscheduled import with_changed_blocks, with_unscheduled

_LANES = (64, 48, 32, 24, 16, 8, 4)
"""The numbers of neighbours, the preferred one first."""
_MIN_BITS, _MAX_LANES = 32, 64
_MIN_LANES = 4
_MIN_REDUCED = 16
"""Fewer numbers in each sum are not worth it."""


def with_vector_accumulators(module: Any, threads: int = 1) -> Any:
    """The module, or a copy where it has such functions; what has a schedule is left alone."""
    accumulate = partial(_accumulate, threads=threads)
    return with_unscheduled(module, partial(with_changed_blocks, change=accumulate))


def _accumulate(schedule: Any, block: Any, threads: int) -> bool:
    """Changes the block where it is a reduction with neighbours."""
    body, loops = schedule.get(block), schedule.get_loops(block)
    kinds = [int(variable.iter_type) for variable in body.iter_vars]
    if len(loops) != len(kinds) or set(kinds) != {IterVar.DataPar, IterVar.CommReduce}:
        return False
    spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == IterVar.DataPar]
    reduced = [loop for loop, kind in zip(loops, kinds, strict=True) if kind != IterVar.DataPar]
    lanes = _lanes(schedule.get(spatial[-1]).extent)
    extents = [schedule.get(loop).extent for loop in reduced]
    if lanes is None or not _is_worth_it(body, extents):
        return False
    outer, inner = schedule.split(spatial[-1], [None, lanes])
    written = schedule.cache_write(block, 0, "global")
    schedule.reorder(*spatial[:-1], outer, *reduced, inner)
    schedule.reverse_compute_at(written, outer)
    schedule.vectorize(inner)
    schedule.vectorize(schedule.get_loops(written)[-1])
    share_out(schedule, block, threads)
    schedule.decompose_reduction(block, reduced[0])
    return True


def _is_worth_it(body: Any, reduced: Sequence[Any]) -> bool:
    """A window of a few numbers LLVM unrolls by itself. Sums of rows that lie one after the other
    would be gathered from all over; in a product the other factor pays for that."""
    if not all(isinstance(extent, IntImm) for extent in reduced):
        return False
    if math.prod(int(extent) for extent in reduced) < _MIN_REDUCED or len(body.writes) != 1:
        return False
    if int(tvm.DataType(str(body.writes[0].source.dtype)).bits) < _MIN_BITS:
        return False
    last = [v.var for v in body.iter_vars if int(v.iter_type) == IterVar.DataPar][-1]
    side_by_side = any(each.region and last.same_as(each.region[-1].min) for each in body.reads)
    return side_by_side or len(body.reads) > 1


def _lanes(extent: Any) -> int | None:
    """The neighbours that are summed up together; None where there are too few."""
    if not isinstance(extent, IntImm):
        return None
    usual = next((lanes for lanes in _LANES if int(extent) % lanes == 0), 0)
    odd = max(lanes for lanes in range(1, _MAX_LANES) if math.gcd(lanes, int(extent)) == lanes)
    lanes = usual if 4 * usual > odd else odd
    return lanes if lanes >= _MIN_LANES else None
