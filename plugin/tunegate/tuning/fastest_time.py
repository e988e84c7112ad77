"""The least time any hardware needs for a task: a record that claims less is a lie."""

from __future__ import annotations

from typing import Literal

from tunegate.artifacts.tasks import TuningTask

PEAK: dict[Literal["llvm", "cuda"], float] = {"llvm": 1e15, "cuda": 2e16}
"""Operations per second in any type that no one socket, no one GPU reaches. Generous on purpose:
the record's own word for its device counts for nothing, and no honest time may be refused."""
_SLACK = 0.5
"""The flop count of a function is an estimate."""


def fastest_nanoseconds(task: TuningTask, kind: Literal["llvm", "cuda"]) -> int:
    """The shortest time of one call, or 0 where the operations are not known. This is the
    roofline's compute side alone: what lies in caches moves faster than any memory."""
    return int(_SLACK * task.flops / PEAK[kind] * 1e9)
