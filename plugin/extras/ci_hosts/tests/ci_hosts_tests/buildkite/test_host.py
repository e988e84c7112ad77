from __future__ import annotations

from pathlib import Path

import pytest

from ci_hosts_tests.recorded_environment import recorded_environment
from tunegate.ci.protocol import JobReport, Links
from tunegate_ci_hosts.buildkite.host import BuildkiteHost

JOB = recorded_environment("buildkite-pull-request")
BUILD = "https://buildkite.com/acme/models/builds/1514"


def test_a_job_has_a_place_on_the_page_of_its_build() -> None:
    assert BuildkiteHost(JOB).links(Path("o")) == Links(run=f"{BUILD}#{JOB['BUILDKITE_JOB_ID']}")
    assert BuildkiteHost({"BUILDKITE_BUILD_URL": BUILD}).links(Path("o")) == Links(run=BUILD)


def test_a_report_is_an_annotation_that_links_to_what_is_uploaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outputs = {"verdict": "pass", "report": "r"}
    report = JobReport(outputs=outputs, summary="# all", directory=Path(".tunegate"))
    command = BuildkiteHost(JOB).tell(report)
    assert command is not None
    assert command.text == "# all\n\n[Whole report](artifact://.tunegate/report.html)\n"
    silent = BuildkiteHost({**JOB, "BUILDKITE_ARTIFACT_PATHS": ""}).tell(report)
    assert silent is not None
    assert silent.text == "# all"


def test_there_is_no_annotation_without_a_report_or_a_job() -> None:
    assert BuildkiteHost(JOB).tell(JobReport(outputs={"verdict": "pass"})) is None
    assert BuildkiteHost({"BUILDKITE": "true"}).tell(JobReport(summary="x")) is None
