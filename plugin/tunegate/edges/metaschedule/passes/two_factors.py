"""Blocks that sum up products of two factors, one of which has the innermost axis of the output
alone: products of matrices, and convolutions with channels last."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tvm.tirx import IntImm, IterVar
from tvm_ffi import structural_walk

from tunegate.edges.metaschedule.variants.group_vectors import place_of_constant

_FLOAT32 = "float32"
_FACTORS = 2
_MIN_REDUCED = 4
"""Fewer numbers in each sum are not worth it."""


class TwoFactors(NamedTuple):
    """`outer` are the loops over outputs, with these `extents`, `reduced` those over what is summed
    up. The read of the number `second` has the innermost axis of the output on its `last_axis`,
    nothing on any of the `axes`, and is a `constant` of the model or not."""

    outer: list[Any]
    reduced: list[Any]
    extents: list[int]
    axes: list[int]
    second: int
    last_axis: int
    constant: bool


def two_factors(schedule: Any, block: Any) -> TwoFactors | None:
    """The factors of the block; None for any other one, and for sizes that are not known."""
    body, loops = schedule.get(block), schedule.get_loops(block)
    kinds = [int(variable.iter_type) for variable in body.iter_vars]
    if len(loops) != len(kinds) or set(kinds) != {IterVar.DataPar, IterVar.CommReduce}:
        return None
    extents = [schedule.get(loop).extent for loop in loops]
    if not all(isinstance(each, IntImm) for each in extents):
        return None
    outer = [n for n, kind in enumerate(kinds) if kind == IterVar.DataPar]
    reduced = [n for n, kind in enumerate(kinds) if kind != IterVar.DataPar]
    if len(outer) < _FACTORS or math.prod(int(extents[n]) for n in reduced) < _MIN_REDUCED:
        return None
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
    """The number of the only read of two that has the innermost axis, as it is."""
    reads, (write,) = list(body.reads), body.writes
    if len(reads) != _FACTORS or str(write.source.dtype) != _FLOAT32:
        return None
    having = [n for n, each in enumerate(reads) if _uses(each, last)]
    if len(having) != 1 or not last.same_as(write.region[-1].min):
        return None
    (found,) = having
    return found if sum(last.same_as(each.min) for each in reads[found].region) == 1 else None


def _uses(region: Any, variable: Any) -> bool:
    found: list[Any] = []
    for each in region.region:
        structural_walk(each.min, [(type(variable), found.append)])
    return any(variable.same_as(each) for each in found)
