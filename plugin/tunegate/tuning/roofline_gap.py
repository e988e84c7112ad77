"""The distance of a task from the rate that the other tasks of the run reach on this machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Work(NamedTuple):
    """The work of one call of a task: operations, bytes that move at
    least, and its best time so far."""

    flops: float
    bytes_moved: float
    best_ms: float | None


def roofline_gaps(works: Sequence[Work]) -> list[float]:
    """The gap ln(best time / the time at the best rate of any) of each
    task, 0 where nothing is known.

    The rates are a roofline (Williams et al., CACM 2009) drawn by the tasks themselves: the most
    operations per millisecond of any of them, and the most bytes. Ansor (OSDI 2020, its appendix on
    the task scheduler) bounds a task by the rates of similar ones to the same end.
    """
    whole = [_whole(work) for work in works]
    timed = [(work, work.best_ms) for work in whole if work.best_ms]
    flops_per_ms = max((work.flops / ms for work, ms in timed), default=0.0)
    bytes_per_ms = max((work.bytes_moved / ms for work, ms in timed), default=0.0)
    return [_behind(work, flops_per_ms, bytes_per_ms) for work in whole]


def _whole(work: Work) -> Work:
    """Drops fractions of one operation or byte: their quotients overflow."""
    return work._replace(
        flops=work.flops if work.flops >= 1 else 0.0,
        bytes_moved=work.bytes_moved if work.bytes_moved >= 1 else 0.0,
    )


def _behind(work: Work, flops_per_ms: float, bytes_per_ms: float) -> float:
    if not work.best_ms:
        return 0.0
    computing_ms = work.flops / flops_per_ms if flops_per_ms else 0.0
    moving_ms = work.bytes_moved / bytes_per_ms if bytes_per_ms else 0.0
    reachable_ms = max(computing_ms, moving_ms)
    return max(0.0, math.log(work.best_ms / reachable_ms)) if reachable_ms > 0 else 0.0
