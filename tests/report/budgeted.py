"""Candidates and errors of one model under a budget of accuracy, as a finding has them."""

from msgspec.structs import replace

from tests.support.reports import make_report, with_finding
from tunegate.artifacts.builds import ErrorEstimate, ErrorLimit, ShippedErrors, SideError, What
from tunegate.artifacts.verdicts import CandidateOutcome, Report


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
    make_outcome("TensorRT", None, reason="is for CUDA devices"),
)

OF_AN_EARLIER_RUN = tuple(
    each if each.ships or each.error is None else replace(each, error=None, has_unknown_error=True)
    for each in BUDGETED
)
"""The same where the election is remembered: only what ships was built and run on samples."""

FLOAT32 = SideError(title="TVM")
LIMITS = (ErrorLimit(what="max-error", limit=2.0), ErrorLimit(what="min-agreement", limit=98.0))


def make_side(*estimates: ErrorEstimate, title: str = "OpenVINO (bf16)") -> SideError:
    limits = {"max-error": 2.0, "min-agreement": 98.0}
    limited = (replace(each, limit=limits[each.what], output="logits") for each in estimates)
    return SideError(title=title, estimates=tuple(limited))


BEFORE = make_side(make_error(0.8, 0.7, 1.1), make_error(100.0, 98.1, 100.0, what="min-agreement"))
AFTER = make_side(make_error(1.6, 1.3, 1.9), make_error(99.2, 98.0, 99.9, what="min-agreement"))


def report_with(shipped: ShippedErrors, **fields: object) -> Report:
    """A report whose only finding has these errors."""
    return with_finding(make_report("measured"), accuracy=shipped, **fields)
