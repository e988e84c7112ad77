"""Kernels without a schedule, changed one by one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

import tvm
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import ScheduleError
from tvm.tirx import PrimFunc

_logger = logging.getLogger(__name__)

_MAIN = "main"

IS_SCHEDULED = "tirx.is_scheduled"
"""The compiler's own mark of a function that its default schedules leave alone."""


def with_unscheduled(
    module: Any, changed: Callable[[Any], Any | None], leaves: Collection[str] = ()
) -> Any:
    """The module, or a copy where `changed` has another function for one that has no schedule, and
    none of the names that it `leaves`; None is for one that stays as it is."""
    others = {
        variable: other
        for variable, function in module.functions.items()
        if isinstance(function, PrimFunc) and IS_SCHEDULED not in (function.attrs or {})
        if variable.name_hint not in leaves
        if (other := changed(function)) is not None
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
    """The function with each of its blocks given to `change`, with a schedule of the function; None
    where that changes none, or meets what the compiler cannot change."""
    try:
        schedule = Schedule(tvm.IRModule({_MAIN: function}))
        blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
        # Told before the first change: that may take others away.
        chosen = [b for b in blocks if not only_sums or schedule.get(b).init is not None]
        done = [change(schedule, block) for block in chosen]
    except Exception:
        _logger.info("a kernel stays as it is", exc_info=True)
        return None
    return schedule.mod[_MAIN] if any(done) else None


# Followers of a sum, computed where the sum is written.


def inline_followers(schedule: Any, written: Any) -> None:
    """Inlines what follows the block, as far as that is possible."""
    with suppress(ScheduleError):
        while followers := schedule.get_consumers(written):
            for follower in followers:
                if schedule.get_consumers(follower):
                    schedule.compute_inline(follower)
                else:
                    schedule.reverse_compute_inline(follower)
