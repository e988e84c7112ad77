from __future__ import annotations

import pytest

from tunegate.ci.protocol import Annotation, JobReport
from tunegate_ci_hosts.bitbucket.insight import insight_of


@pytest.mark.parametrize(
    ("verdict", "result"),
    [("pass", "PASSED"), ("fail", "FAILED"), ("error", "FAILED"), ("inconclusive", None)],
)
def test_only_a_decision_is_a_result(verdict: str, result: str | None) -> None:
    found = insight_of(JobReport(outputs={"verdict": verdict}), "https://bitbucket.org/x")
    assert found.get("result") == result
    assert found["details"] == f"verdict: {verdict}"
    assert found["link"] == "https://bitbucket.org/x"


def test_details_are_plain_and_short() -> None:
    annotation = Annotation(level="error", title="t", text="slow\n\x1b[0m" + "x" * 3000)
    found = insight_of(JobReport(annotations=[annotation] * 2), "javascript:x")
    assert "link" not in found
    details = str(found["details"])
    assert details.isprintable()
    assert len(details) == 2000
