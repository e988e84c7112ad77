"""The cost of one measured candidate, for the history of its task, and the time limits of the next
ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tunegate.artifacts.outcomes import CandidateCost
from tunegate.engine.protocol import Candidate, Measured

_ENOUGH_SEEN = 4
_TIMES_THE_SLOWEST, _MIN_SECONDS = 3.0, 5.0


def cost_of(
    stage: Literal["quick", "confirm"], candidate: Candidate, measured: Measured, *, improved: bool
) -> CandidateCost:
    return CandidateCost(
        stage=stage,
        origin=candidate.origin,
        pick=candidate.reason if candidate.origin == "search" else "given",
        status=measured.status,
        build_seconds=measured.build_seconds,
        run_seconds=measured.run_seconds,
        milliseconds=measured.median_ms if measured.status == "ok" else None,
        improved=improved,
    )


def patience_seconds(costs: Sequence[CandidateCost]) -> float | None:
    """Returns the seconds that building, or measuring, may take, by the times of the task's
    candidates so far; None before there are enough of them. What takes several times the longest of
    the others is hardly the best. (DOPpler's limit adapts to the load, IEEE TPDS 2023; that of
    Helion's autotuner to what was seen, as here.)"""
    taken = [
        max(cost.build_seconds, cost.run_seconds)
        for cost in costs
        if cost.status == "ok" and cost.origin != "default"
    ]
    if len(taken) < _ENOUGH_SEEN:
        return None
    return max(_MIN_SECONDS, _TIMES_THE_SLOWEST * max(taken))
