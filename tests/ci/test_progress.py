from __future__ import annotations

import msgspec
import pytest

from tests.support.report_parts import finding, verdict
from tests.support.reports import make_report
from tunegate.artifacts.verdicts import Verdict
from tunegate.ci.job_results import concluded
from tunegate.ci.protocol import JobProgress

BEGUN = JobProgress(name=".tunegate", commit="a" * 40)
FORBIDDEN = msgspec.structs.replace(
    verdict("fail", 1, finding("pass", "")),
    policy_changes=make_report("loosened").verdict.policy_changes,
    policy_fails=True,
)


@pytest.mark.parametrize(
    ("exit_code", "found", "outcome"),
    [
        (0, verdict("pass", 0, finding("pass", "")), "passed"),
        (0, verdict("pass", 0), "nothing to check"),
        (0, None, "failed"),
        (1, verdict("fail", 1, finding("fail", "slower")), "failed"),
        (1, FORBIDDEN, "waits"),
        (2, None, "failed"),
        (3, verdict("inconclusive", 3, finding("inconclusive", "")), "waits"),
        (4, None, "failed"),
        (5, None, "waits"),
        (70, None, "failed"),
        (130, None, "cancelled"),
    ],
)
def test_every_exit_code_has_an_outcome_and_only_a_pass_is_green(
    exit_code: int, found: Verdict | None, outcome: str
) -> None:
    assert concluded(BEGUN, exit_code, found).outcome == outcome


def test_the_title_counts_and_quotes_nothing() -> None:
    slow = finding("fail", "@everybody", model="# title")
    assert concluded(BEGUN, 1, verdict("fail", 1, slow)).title == "Fail: 1 check, 1 failed"
    assert concluded(BEGUN, 130, None).title == "No verdict (exit code 130)"
