"""The expected time to build and measure one model on one target.

Rough on purpose: it decides which runner measures what, and is told to people. The figures are
what one small machine was seen to take.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tunegate.artifacts.changes import SIDES, ModelChange, ModelPath, Side
from tunegate.artifacts.tasks import TuningTask
from tunegate.config import GateConfig
from tunegate.tuning.expected_time import TargetKind, prior_ms

SIDE_SECONDS = 4.0
"""Starting a compiler, checking the numbers and choosing the runtime, of one side."""
TASK_SECONDS = 0.4
"""Seconds that a kernel of one side adds."""
OPENING_SECONDS = 0.6
"""The seconds for one side of a model under a candidate that compiles nothing."""
LAUNCH_SECONDS = 3.0
"""Two processes that start, load and warm up."""
BLOCK_INFERENCES = 20
"""The inferences of one side in one block."""
EXPECTED_LAUNCHES = 10
"""Launches that decide a usual change, probes included."""


def expected_seconds(
    change: ModelChange, tasks: Iterable[TuningTask], kind: TargetKind, gate: GateConfig
) -> float:
    """The time of building, and of measuring."""
    mine = tuple(tasks)
    return building_seconds(change, mine) + measuring_seconds(change, mine, kind, gate)


def building_seconds(change: ModelChange, tasks: Iterable[TuningTask]) -> float:
    """The time of compiling and checking all sides of a model."""
    sides = {
        (task.key, use.side) for task in tasks for use in task.uses if use.model == change.path
    }
    return SIDE_SECONDS * len(_sides(change)) + TASK_SECONDS * len(sides)


def measuring_seconds(
    change: ModelChange, tasks: Iterable[TuningTask], kind: TargetKind, gate: GateConfig
) -> float:
    """The time of measuring, within what the gate may spend. A model without a base is run a few
    times."""
    mine, sides = _of(change, tasks), _sides(change)
    inference_seconds = sum(_inference_seconds(mine, change.path, side, kind) for side in sides)
    if "base" not in sides:
        return BLOCK_INFERENCES * inference_seconds
    launch = LAUNCH_SECONDS + gate.pairs * BLOCK_INFERENCES * inference_seconds
    return min(gate.seconds * (2 if gate.extend else 1), EXPECTED_LAUNCHES * launch)


def _sides(change: ModelChange) -> list[Side]:
    return [side for side in SIDES if getattr(change, side) is not None]


def _of(change: ModelChange, tasks: Iterable[TuningTask]) -> list[TuningTask]:
    return [task for task in tasks if any(use.model == change.path for use in task.uses)]


def _inference_seconds(
    tasks: Sequence[TuningTask], path: ModelPath, side: Side, kind: TargetKind
) -> float:
    return sum(
        use.weight * prior_ms(task, kind) / 1e3
        for task in tasks
        for use in task.uses
        if (use.model, use.side) == (path, side)
    )
