"""The outermost loops of kernels without a record, shared out to the threads of the target.

Iterations over outputs have nothing to do with each other: each sum stays in one thread, and adds
the same numbers in the same order. So no bit changes.
"""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from typing import Any

import tvm
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import ScheduleError
from tvm.tirx import For, ForKind, IntImm

from tunegate.edges.metaschedule.passes.unscheduled import with_unscheduled

_logger = logging.getLogger(__name__)

_MAIN = "main"
_SHARES = 4
"""Shares of each thread, so that none waits long for the others."""
_FEWEST_NUMBERS = 50_000
"""A nest over fewer is done before the other threads have begun."""


def with_parallel_loops(module: Any, target: Any) -> Any:
    """The module, or a copy where it has such functions; what has a schedule is left alone."""
    threads = threads_of(target)
    return with_unscheduled(module, lambda function: in_parallel(function, threads))


def threads_of(target: Any) -> int:
    return int(target.attrs.get("num-cores", 1))


def in_parallel(function: Any, threads: int) -> Any | None:
    """The function with its large nests shared out; None where it has none, or one that the
    compiler cannot change."""
    if threads == 1:
        return None
    try:
        schedule = Schedule(tvm.IRModule({_MAIN: function}))
        blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
        done = [share_out(schedule, block, threads) for block in blocks]
    except Exception:
        _logger.info("a kernel stays in one thread", exc_info=True)
        return None
    return schedule.mod[_MAIN] if any(done) else None


def share_out(schedule: Any, block: Any, threads: int, *, lanes: int = 1) -> bool:
    """Shares out the loops around the block where they are large. Each step of the innermost one
    computes so many numbers. A sum must not yet be taken apart into its beginning and its rest:
    the compiler would no longer know that it is one."""
    if threads == 1 or lanes * _steps(schedule, block) < _FEWEST_NUMBERS:
        return False
    return _shared_out(schedule, block, _SHARES * threads)


def _steps(schedule: Any, block: Any) -> int:
    """The iterations of all loops around a block; 0 where they are not known."""
    extents = [schedule.get(loop).extent for loop in schedule.get_loops(block)]
    known = [int(extent) for extent in extents if isinstance(extent, IntImm)]
    return math.prod(known) if len(known) == len(extents) else 0


def _shared_out(schedule: Any, block: Any, shares: int) -> bool:
    """Shares out the fewest outermost loops around the block that have so many iterations, or all
    that may be."""
    loops = _nested(schedule, schedule.get_loops(block))
    extents = [int(schedule.get(loop).extent) for loop in loops]
    enough = (n for n in range(1, len(loops)) if math.prod(extents[:n]) >= shares)
    for count in range(next(enough, len(loops)), 0, -1):
        if math.prod(extents[:count]) > 1 and _is_parallel(schedule, block, count):
            return True
    return False


def _nested(schedule: Any, loops: list[Any]) -> list[Any]:
    """The outermost loops that have nothing but the next one inside."""
    found = []
    for loop in loops:
        node = schedule.get(loop)
        if int(node.kind) != ForKind.SERIAL:
            break
        found.append(loop)
        if not isinstance(node.body, For):
            break
    return found


def _is_parallel(schedule: Any, block: Any, count: int) -> bool:
    """Shares out so many loops, where their iterations may run at once."""
    trial = schedule.copy()
    with suppress(ScheduleError):
        trial.parallel(trial.fuse(*trial.get_loops(block)[:count]))
        schedule.parallel(schedule.fuse(*schedule.get_loops(block)[:count]))
        return True
    return False
