"""The worst status of several, and the exit code of each."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate import errors
from tunegate.artifacts.verdicts import Status

# The worst decides. A proven regression comes before all that could not be found out, so that it is
# never hidden behind trouble with another model; a wrong or failed build comes before everything.
SEVERITY: tuple[Status, ...] = (
    "error", "fail", "invalid-env", "no-baseline", "inconclusive", "waived", "new", "pass",
)  # fmt: skip
EXIT_CODES: dict[Status, int] = {
    "error": errors.USAGE,
    "fail": errors.FAIL,
    "invalid-env": errors.UNFIT,
    "no-baseline": errors.NO_BASELINE,
    "inconclusive": errors.INCONCLUSIVE,
    "waived": errors.PASS,
    "new": errors.PASS,
    "pass": errors.PASS,
}


def worst(statuses: Sequence[Status]) -> Status:
    return min(statuses, key=SEVERITY.index, default="pass")
