"""A fail on a shared runner, looked at again on another machine: only what both saw is a regression."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tunegate import errors
from tunegate.artifacts.builds import Cell
from tunegate.artifacts.verdicts import Finding, Status, Verdict
from tunegate.errors import ArtifactError
from tunegate.stages.gate import EXIT_CODES, worst


def confirm(first: Verdict, second: Verdict) -> Verdict:
    """The first verdict, in which every fail needs the second one's. What the second could not decide
    stays undecided, never green. Raises ArtifactError where the two are of different revisions."""
    if (first.revisions.base, first.revisions.head) != (
        second.revisions.base,
        second.revisions.head,
    ):
        message = (
            f"the verdicts are of {first.revisions.head[:12]} and {second.revisions.head[:12]}: "
            "confirm a verdict with another of the same revisions."
        )
        raise ArtifactError(message)
    others = {Cell(model=each.model, target=each.target): each for each in second.findings}
    findings = tuple(_confirmed(each, others) for each in first.findings)
    status = worst([finding.status for finding in findings])
    if first.policy_fails or second.policy_fails:  # no machine decides that
        status = worst([status, "fail"])
    code = EXIT_CODES[status]
    undecided_may_pass = first.status == "inconclusive" and first.exit_code == errors.PASS
    if status == "inconclusive" and undecided_may_pass:
        code = errors.PASS
    return msgspec.structs.replace(first, status=status, exit_code=code, findings=findings)


def _confirmed(finding: Finding, others: Mapping[Cell, Finding]) -> Finding:
    if finding.status != "fail":
        return finding
    other = others.get(Cell(model=finding.model, target=finding.target))
    seen = "nothing was measured there" if other is None else other.reason
    status: Status = "inconclusive"
    said = "not decided on the second machine"
    if other is not None and other.status == "fail":
        status, said = "fail", "confirmed on a second machine"
    elif other is not None and other.status == "pass":
        status, said = "pass", "not confirmed on a second machine"
    return msgspec.structs.replace(
        finding, status=status, reason=f"{finding.reason}; {said}: {seen}"
    )
