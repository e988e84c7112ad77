"""The outermost loops of kernels without a record, shared out to the threads of the target.

Iterations over outputs have nothing to do with each other: each sum stays in one thread, and adds
the same numbers in the same order. So no bit changes.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial
from typing import Any

from tvm.s_tir.schedule import ScheduleError
from tvm.tirx import For, ForKind, IntImm

from tunegate.compiler.schedules.unscheduled import with_changed_blocks, with_unscheduled
from tunegate.compiler.targets import threads_of

_SHARES = 4
"""Shares of each thread, so that none waits long for the others."""
_FEWEST_NUMBERS = 50_000
"""A nest over fewer is done before the other threads have begun."""


def with_parallel_loops(module: Any, target: Any) -> Any:
    """The module, or a copy where it has such functions; what has a schedule is left alone."""
    if (threads := threads_of(target)) == 1:
        return module
    shared = partial(share_out, threads=threads)
    return with_unscheduled(module, partial(with_changed_blocks, change=shared))


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
