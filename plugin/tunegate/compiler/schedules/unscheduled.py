"""Changes kernels without a schedule, one by one."""

import logging
import math
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Any

import tvm
from tvm.s_tir import SBlockRealize, Schedule
from tvm.s_tir.schedule import ScheduleError
from tvm.tirx import Evaluate, For, ForKind, IntImm, PrimFunc, SeqStmt
from tvm_ffi import structural_walk

from tunegate.compiler.importing.chain_cuts import OPAQUE, PATTERN
from tunegate.compiler.targets import threads_of

_logger = logging.getLogger(__name__)

_MAIN, _SYMBOL = "main", "global_symbol"

IS_SCHEDULED = "tirx.is_scheduled"
"""The compiler's own mark of a function that its default schedules skip."""


def with_unscheduled(
    module: Any, change: Callable[[Any], Any | None], leaves: Collection[str] = ()
) -> Any:
    """Returns the module, or a copy in which `change` replaced unscheduled functions. `change`
    returns None for a function that stays; functions named in `leaves` stay too."""
    others = {
        variable: other
        for variable, function in module.functions.items()
        if isinstance(function, PrimFunc) and IS_SCHEDULED not in (function.attrs or {})
        if variable.name_hint not in leaves
        if (other := change(function)) is not None
    }
    if not others:
        return module
    module = module.clone()
    for variable, other in others.items():
        module.update_func(variable, other)
    return module


def with_changed_blocks(
    function: Any, change: Callable[[Any, Any], bool], *, only_sums: bool = False
) -> Any | None:
    """Returns the function after `change` was applied to each block of its schedule; None if it
    changed nothing, or the compiler could not."""
    try:
        schedule = Schedule(tvm.IRModule({_MAIN: function}))
        blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
        # Before the first change, which may remove other blocks.
        blocks_to_change = [b for b in blocks if not only_sums or schedule.get(b).init is not None]
        scheduled_blocks = [change(schedule, block) for block in blocks_to_change]
    except Exception:
        _logger.info("a kernel stays as it is", exc_info=True)
        return None
    return schedule.mod[_MAIN] if any(scheduled_blocks) else None


def with_symbol_of(new_function: Any, function: Any) -> Any:
    """Returns the new function with the symbol of the original, if it has one."""
    symbol = (function.attrs or {}).get(_SYMBOL)
    if symbol:
        return new_function.with_attr(_SYMBOL, symbol)
    return new_function.without_attr(_SYMBOL)


# Kernels of tensors without a number.


def idle(function: Any) -> Any | None:
    """Returns the function with a body that does nothing, None if it has something to do."""
    if not does_nothing(function):
        return None
    empty = PrimFunc(function.params, Evaluate(0), attrs=function.attrs)
    return empty.with_attr(IS_SCHEDULED, True).with_attr(PATTERN, OPAQUE)


def does_nothing(function: Any) -> bool:
    """Returns whether all that an unscheduled kernel computes has no number."""
    if not isinstance(function.body, SBlockRealize):
        return False
    body = function.body.block.body
    return all(map(loops_over_nothing, body.seq if isinstance(body, SeqStmt) else [body]))


def loops_over_nothing(code: Any) -> bool:
    """Returns whether a loop in it has no step."""
    loops: list[Any] = []
    structural_walk(code, [(For, loops.append)])
    return any(isinstance(loop.extent, IntImm) and int(loop.extent) == 0 for loop in loops)


# Computes followers of a sum where the sum is written.


def inline_followers(schedule: Any, block: Any) -> None:
    """Inlines what follows the block, as far as possible."""
    with suppress(ScheduleError):
        while followers := schedule.get_consumers(block):
            for follower in followers:
                if schedule.get_consumers(follower):
                    schedule.compute_inline(follower)
                else:
                    schedule.reverse_compute_inline(follower)


# Shares the outermost loops of kernels without a record among the target's threads. Iterations over
# outputs are independent: each sum stays in one thread, and adds the same numbers in the same
# order. So no bit changes.

_SHARES = 4
"""Shares per thread, so that none waits long for the others."""
_FEWEST_NUMBERS = 50_000
"""A smaller nest is done before the other threads have begun."""


def with_parallel_loops(module: Any, target: Any) -> Any:
    """Returns the module, or a changed copy if it has such functions; scheduled functions stay as
    they are."""
    if (threads := threads_of(target)) == 1:
        return module
    share = partial(share_out, threads=threads)
    return with_unscheduled(module, partial(with_changed_blocks, change=share))


def share_out(schedule: Any, block: Any, threads: int, *, lanes: int = 1) -> bool:
    """Shares out the loops around the block if they are large, and returns whether it did. Each
    step of the innermost loop computes `lanes` numbers. A sum must not yet be decomposed into its
    start and its rest: the compiler would no longer know that it is a sum."""
    if threads == 1 or lanes * _steps(schedule, block) < _FEWEST_NUMBERS:
        return False
    return _shared_out(schedule, block, _SHARES * threads)


def _steps(schedule: Any, block: Any) -> int:
    """Returns the iterations of all loops around a block, 0 if unknown."""
    extents = [schedule.get(loop).extent for loop in schedule.get_loops(block)]
    sizes = [int(extent) for extent in extents if isinstance(extent, IntImm)]
    return math.prod(sizes) if len(sizes) == len(extents) else 0


def _shared_out(schedule: Any, block: Any, shares: int) -> bool:
    """Shares out the fewest outermost loops that have at least `shares` iterations, or all that may
    be shared."""
    loops = _perfectly_nested(schedule, schedule.get_loops(block))
    extents = [int(schedule.get(loop).extent) for loop in loops]
    enough = (n for n in range(1, len(loops)) if math.prod(extents[:n]) >= shares)
    for count in range(next(enough, len(loops)), 0, -1):
        if math.prod(extents[:count]) > 1 and _is_parallel(schedule, block, count):
            return True
    return False


def _perfectly_nested(schedule: Any, loops: list[Any]) -> list[Any]:
    """Returns the outermost loops that contain nothing but the next one."""
    outermost = []
    for loop in loops:
        node = schedule.get(loop)
        if int(node.kind) != ForKind.SERIAL:
            break
        outermost.append(loop)
        if not isinstance(node.body, For):
            break
    return outermost


def _is_parallel(schedule: Any, block: Any, count: int) -> bool:
    """Shares out `count` loops if their iterations may run in parallel, and returns whether it
    did."""
    trial = schedule.copy()
    with suppress(ScheduleError):
        trial.parallel(trial.fuse(*trial.get_loops(block)[:count]))
        schedule.parallel(schedule.fuse(*schedule.get_loops(block)[:count]))
        return True
    return False
