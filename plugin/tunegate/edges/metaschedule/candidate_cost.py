"""What one measured candidate adds to the ledger of its task."""

from __future__ import annotations

from typing import Literal

from tunegate.artifacts.outcomes import CandidateCost
from tunegate.edges.metaschedule.messages import Candidate, Measured


def cost_of(
    stage: Literal["look", "confirm"], candidate: Candidate, measured: Measured, *, improved: bool
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
