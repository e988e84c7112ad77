"""Candidates of one model, as a finding has them."""

from __future__ import annotations

from tunegate.artifacts.builds import ErrorEstimate, What
from tunegate.artifacts.verdicts import CandidateOutcome


def make_error(
    center: float, low: float, high: float | None, *, what: What = "max-error"
) -> ErrorEstimate:
    return ErrorEstimate(what=what, center=center, low=low, high=high, samples=128)


def make_outcome(
    title: str,
    ms: float | None,
    error: ErrorEstimate | None = None,
    *,
    ships: bool = False,
    reason: str = "",
) -> CandidateOutcome:
    return CandidateOutcome(
        candidate=title.lower(),
        title=title,
        ships=ships,
        ms=ms,
        low_ms=None if ms is None else 0.98 * ms,
        high_ms=None if ms is None else 1.05 * ms,
        reason=reason,
        error=error,
    )


BUDGETED = (
    make_outcome("OpenVINO (bf16)", 1.9, make_error(0.8, 0.7, 1.1), ships=True),
    make_outcome("TVM", 2.99),
    make_outcome("ONNX Runtime", 3.26),
    make_outcome("OpenVINO", 2.4),
    make_outcome("ONNX Runtime (int8.dynamic)", 2.6, make_error(1.6, 1.3, 2.1)),
    make_outcome("Hybrid", None, reason="TVM compiles the whole model"),
)
