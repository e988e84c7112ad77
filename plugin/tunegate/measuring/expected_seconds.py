"""The expected time to build and measure one model on one target.

Rough on purpose: it only decides which runner measures what. The figures are what one small
machine was seen to take; only their ratios matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tunegate.artifacts.changes import SIDES, ModelChange, ModelPath, Side
from tunegate.artifacts.tasks import TuningTask
from tunegate.config import GateConfig
from tunegate.tuning.expected_time import TargetKind, prior_ms

SIDE_SECONDS = 4.0
"""Starting a compiler, checking the numbers and choosing the runtime, of one side."""
TASK_SECONDS = 0.5
LAUNCH_SECONDS = 3.0
"""Two processes that start, load and warm up."""
BLOCK_INFERENCES = 20
"""The inferences of one side in one block."""
EXPECTED_LAUNCHES = 10
"""What decides a usual change, probes included."""


def expected_seconds(
    change: ModelChange, tasks: Iterable[TuningTask], kind: TargetKind, gate: GateConfig
) -> float:
    """The time of building, and of measuring within what the gate may spend. A model without a base
    is built, and run a few times."""
    sides = [side for side in SIDES if getattr(change, side) is not None]
    mine = [task for task in tasks if any(use.model == change.path for use in task.uses)]
    building = SIDE_SECONDS * len(sides) + TASK_SECONDS * len(mine)
    inference_seconds = [_inference_seconds(mine, change.path, side, kind) for side in sides]
    if "base" not in sides:
        return building + BLOCK_INFERENCES * sum(inference_seconds)
    launch = LAUNCH_SECONDS + gate.pairs * BLOCK_INFERENCES * sum(inference_seconds)
    return building + min(gate.seconds * (2 if gate.extend else 1), EXPECTED_LAUNCHES * launch)


def _inference_seconds(
    tasks: Sequence[TuningTask], path: ModelPath, side: Side, kind: TargetKind
) -> float:
    return sum(
        use.weight * prior_ms(task, kind) / 1e3
        for task in tasks
        for use in task.uses
        if (use.model, use.side) == (path, side)
    )
