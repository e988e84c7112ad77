from __future__ import annotations

import msgspec
import pytest

from tests.support import report_parts as parts
from tunegate.artifacts.verdicts import Status, Verdict
from tunegate.errors import ArtifactError
from tunegate.stages.confirm import confirm
from tunegate.stages.gate import EXIT_CODES


def verdict(status: Status, reason: str = "because") -> Verdict:
    return parts.verdict(status, EXIT_CODES[status], parts.finding(status, reason))


@pytest.mark.parametrize(
    ("second", "status", "code", "said"),
    [
        ("fail", "fail", 1, "confirmed on a second machine: also slow"),
        ("pass", "pass", 0, "not confirmed on a second machine: also slow"),
        ("inconclusive", "inconclusive", 3, "not decided on the second machine"),
        ("invalid-env", "inconclusive", 3, "not decided on the second machine"),
        ("error", "inconclusive", 3, "not decided on the second machine"),
    ],
)
def test_a_fail_needs_a_second_one(second: Status, status: str, code: int, said: str) -> None:
    found = confirm(verdict("fail", "slow"), verdict(second, "also slow"))
    assert (found.status, found.exit_code) == (status, code)
    assert found.findings[0].reason.startswith("slow; ")
    assert said in found.findings[0].reason


@pytest.mark.parametrize("first", ["pass", "error", "no-baseline", "inconclusive", "new"])
def test_what_did_not_fail_stays_as_it_was(first: Status) -> None:
    assert confirm(verdict(first), verdict("fail")) == verdict(first)


def test_a_cell_that_the_second_machine_never_saw_is_undecided() -> None:
    nothing = parts.verdict("pass", 0)
    assert confirm(verdict("fail"), nothing).status == "inconclusive"


def test_verdicts_of_different_revisions_are_refused() -> None:
    other = verdict("fail")
    moved = msgspec.structs.replace(other.revisions, head="f" * 40)
    with pytest.raises(ArtifactError, match="the verdicts are of"):
        confirm(verdict("fail"), msgspec.structs.replace(other, revisions=moved))


def test_a_second_machine_does_not_allow_what_the_policy_forbids() -> None:
    first = msgspec.structs.replace(verdict("fail"), policy_fails=True)
    assert (confirm(first, verdict("pass")).status, confirm(first, verdict("pass")).exit_code) == (
        "fail",
        1,
    )
