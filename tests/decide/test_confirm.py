from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from tests.support import report_parts as parts
from tunegate.artifacts.verdicts import EXIT_CODES, Status, Verdict, VerdictOrigin
from tunegate.decide.confirm import confirm
from tunegate.errors import USAGE, ArtifactError


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


def measured(by: Verdict, run: str, machine: str) -> Verdict:
    return replace(by, origin=replace(by.origin, measurements=run, machine=machine))


FIRST = measured(verdict("fail"), "run a", "machine a")
SECOND = measured(verdict("pass"), "run b", "machine b")
REVISIONS = SECOND.revisions


def test_two_machines_that_saw_the_same_are_two_looks() -> None:
    assert confirm(FIRST, SECOND).status == "pass"


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (replace(SECOND, revisions=replace(REVISIONS, head="f" * 40)), "of head b81d3e5f7a9c and"),
        (replace(SECOND, revisions=replace(REVISIONS, base="f" * 40)), "of base 4f2a1c9d8e7b and"),
        (replace(SECOND, revisions=replace(REVISIONS, base=None)), "4f2a1c9d8e7b and none"),
        (replace(SECOND, margin_percent=60.0), "have margins of 3% and 60%"),
        (replace(SECOND, origin=replace(SECOND.origin, rules="s" * 64)), "by different rules"),
        (replace(SECOND, findings=()), "only one of the verdicts has models/squeezenet.onnx"),
        (
            replace(SECOND, findings=(parts.finding("pass", "fast", target="gpu"),)),
            "only one of the verdicts has",
        ),
        (measured(SECOND, "run a", "machine b"), "of one and the same run"),
        (measured(SECOND, "run b", "machine a"), "of one and the same machine"),
    ],
)
def test_what_is_no_second_look_at_the_same_is_refused(second: Verdict, said: str) -> None:
    with pytest.raises(ArtifactError, match=re.escape(said)) as refused:
        confirm(FIRST, second)
    assert refused.value.exit_code == USAGE
    with pytest.raises(ArtifactError):
        confirm(second, FIRST)


def test_verdicts_that_say_no_rules_are_refused() -> None:
    with pytest.raises(ArtifactError, match="by different rules"):
        confirm(replace(FIRST, origin=VerdictOrigin()), replace(SECOND, origin=VerdictOrigin()))


def test_where_nothing_was_measured_the_machine_does_not_matter() -> None:
    nothing = replace(parts.verdict("pass", 0), origin=VerdictOrigin(rules="r"))
    assert confirm(nothing, nothing) == nothing


def test_a_second_machine_does_not_allow_what_the_policy_forbids() -> None:
    first = replace(verdict("fail"), policy_fails=True)
    assert (confirm(first, verdict("pass")).status, confirm(first, verdict("pass")).exit_code) == (
        "fail",
        1,
    )
