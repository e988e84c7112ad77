"""A second machine's word on a fail: only a regression that both machines saw is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from tunegate import errors
from tunegate.artifacts.builds import Cell
from tunegate.artifacts.verdicts import EXIT_CODES, Finding, Status, Verdict, worst
from tunegate.errors import ArtifactError

_ANOTHER = "Confirm a verdict with one of another machine, of the same revisions, models and rules."


def confirm(first: Verdict, second: Verdict) -> Verdict:
    """Returns the first verdict, with each fail kept only if the second verdict has it too. A check
    that the second could not decide becomes undecided, never green. Raises ArtifactError if the two
    do not measure the same change."""
    problem = next(_differences(first, second), None)
    if problem is not None:
        raise ArtifactError(f"{problem}. {_ANOTHER}")
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


def _differences(first: Verdict, second: Verdict) -> Iterator[str]:
    """Yields the reasons why these are not two measurements of one change. Two runs on one machine
    are refused: a quirk of that machine would be there twice."""
    for name, one, other in (
        ("base", first.revisions.base, second.revisions.base),
        ("head", first.revisions.head, second.revisions.head),
    ):
        if one != other:
            yield f"the verdicts are of {name} {(one or 'none')[:12]} and {(other or 'none')[:12]}"
    if first.margin_percent != second.margin_percent:
        margins = f"{first.margin_percent:g}% and {second.margin_percent:g}%"
        yield f"the verdicts have margins of {margins}"
    if first.origin.rules != second.origin.rules or not first.origin.rules:
        yield "the verdicts were reached by different rules"
    if _cells(first) != _cells(second):
        only = sorted(_cells(first) ^ _cells(second))
        yield f"only one of the verdicts has {only[0][0]} on {only[0][1]}"
    if first.origin.measurements and first.origin.measurements == second.origin.measurements:
        yield "the verdicts are of one and the same run"
    elif first.origin.measurements and _machines(first) & _machines(second):
        yield "the verdicts are of one and the same machine"


def _machines(verdict: Verdict) -> set[str]:
    """Returns the names of all machines behind the verdict. Verdicts of older versions may have
    none."""
    return set(verdict.origin.machine.split(", "))


def _cells(verdict: Verdict) -> set[tuple[str, str]]:
    return {(finding.model, finding.target) for finding in verdict.findings}
