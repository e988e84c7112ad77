from __future__ import annotations

import pytest

from ci_hosts_tests.recorded_environment import recorded_environment
from tunegate.ci.protocol import AgentCommand
from tunegate_ci_hosts.buildkite.annotation import annotation_of

JOB = recorded_environment("buildkite-pull-request")


def made(verdict: str = "fail", text: str = "report", report: str = "") -> AgentCommand:
    return annotation_of(JOB, verdict, text, report)


def test_a_step_has_one_annotation_that_its_next_run_replaces() -> None:
    step = JOB["BUILDKITE_STEP_ID"]
    assert made().arguments == ("annotate", "--context", f"tunegate/{step}", "--style", "error")
    assert annotation_of({}, "pass", "x", "").arguments[2] == "tunegate"
    assert made().text == "report"


@pytest.mark.parametrize(
    ("verdict", "style"),
    [
        ("pass", "success"),
        ("fail", "error"),
        ("error", "error"),
        ("inconclusive", "warning"),
        ("no-baseline", "info"),
        ("", "info"),
    ],
)
def test_the_style_is_that_of_the_verdict(verdict: str, style: str) -> None:
    assert made(verdict).arguments[-1] == style


def test_the_agent_gets_what_it_needs_to_know_its_job_and_no_more() -> None:
    more = {**JOB, "HTTPS_PROXY": "http://proxy", "AWS_SECRET_ACCESS_KEY": "x"}
    command = annotation_of(more, "pass", "x", "")
    assert set(command.variables) == {
        *("BUILDKITE_AGENT_ACCESS_TOKEN", "BUILDKITE_AGENT_ENDPOINT"),
        *("BUILDKITE_JOB_ID", "BUILDKITE_BUILD_ID", "HTTPS_PROXY"),
    }
    assert command.directory == "/usr/local/bin"
    assert "bk-session" not in repr(command)


def test_the_report_is_linked_among_the_artifacts() -> None:
    assert made(report=".tunegate/report.html").text == (
        "report\n\n[Whole report](artifact://.tunegate/report.html)\n"
    )
    assert made(report="a b)](x").text == "report"


def test_an_annotation_stays_within_buildkites_limit() -> None:
    text = made(text="é" * 600_000 + "\n" + "x" * 300_000).text
    assert len(text.encode()) < 2**20
    assert text.endswith("(cut: the whole report is among the artifacts)\n")
