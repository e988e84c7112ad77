"""Chains of element-wise operators as one loop, where no record has a schedule for them.

As they are written, each operator goes over all numbers and writes them to memory for the next.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial
from typing import Any

from tvm.ir.expr import TensorLoad
from tvm.s_tir.schedule import ScheduleError
from tvm.tirx import IntImm, IterVar
from tvm_ffi import structural_walk

from tunegate.edges.metaschedule.passes.unscheduled import with_changed_blocks, with_unscheduled


def with_inlined_chains(module: Any) -> Any:
    """The module, or a copy where it has such functions; what has a schedule is left alone."""
    return with_unscheduled(module, partial(with_changed_blocks, change=_inline))


def _inline(schedule: Any, block: Any) -> bool:
    """Inlines a block into the only other one that reads it, once for each of its numbers: so
    nothing is computed twice."""
    consumers = schedule.get_consumers(block)
    if len(consumers) != 1:
        return False
    body, consumer = schedule.get(block), schedule.get(consumers[0])
    size = _numbers(body)
    if size is None or size != _numbers(consumer) or _reads(consumer, body) != 1:
        return False
    with suppress(ScheduleError):
        schedule.compute_inline(block)
        return True
    return False


def _numbers(body: Any) -> int | None:
    """The numbers that a block computes, each by itself; None for sums and unknown sizes."""
    extents = [variable.dom.extent for variable in body.iter_vars]
    kinds = {int(variable.iter_type) for variable in body.iter_vars}
    if kinds != {IterVar.DataPar} or not all(isinstance(each, IntImm) for each in extents):
        return None
    return math.prod(int(each) for each in extents)


def _reads(consumer: Any, producer: Any) -> int:
    (written,) = producer.writes
    loads: list[Any] = []
    structural_walk(consumer.body, [(TensorLoad, loads.append)])
    return sum(load.source.same_as(written.source) for load in loads)
