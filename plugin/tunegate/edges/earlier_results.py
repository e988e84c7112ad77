"""Results of an earlier run in the output directory, which must not pass for this one's."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tunegate.errors import OutputError

_PLANNING = ("tasks.json", "plan.json", "matrix.json", "outcome-*.json")
_GATING = (
    "measurements.json",
    "verdict.json",
    "report.md",
    "report.html",
    "junit.xml",
    "sarif.json",
)


def forget_results(out: Path, *, since: Literal["plan", "gate"]) -> None:
    """Remove what this step and the later ones wrote. A gate reads every outcome it finds, and who
    reads a verdict cannot see that the run which should have written it failed early."""
    patterns = (*_PLANNING, *_GATING) if since == "plan" else _GATING
    for path in [path for pattern in patterns for path in out.glob(pattern)]:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            message = f"{path}: cannot be replaced ({error.strerror}). Choose another --out."
            raise OutputError(message) from error
