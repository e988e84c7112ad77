from __future__ import annotations

from pathlib import Path

import pytest

from ci_hosts_tests.recorded_environment import recorded_environment
from tunegate.ci.protocol import AskedRevisions, HostRefusedError, JobReport, Links
from tunegate_ci_hosts.jenkins.host import JenkinsHost

JOB = recorded_environment("jenkins-branch")
BUILD = "https://ci.example.org/job/acme/job/models/job/main/3"


def test_a_report_in_the_workspace_is_among_the_artifacts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    host = JenkinsHost({**JOB, "WORKSPACE": str(tmp_path)})
    report = f"{BUILD}/artifact/.tune%20gate/report.html"
    assert host.links(Path(".tune gate")) == Links(run=BUILD, report=report)
    assert JenkinsHost(JOB).links(Path("o")) == Links(run=BUILD)


def test_outputs_are_lines_that_no_value_can_add_to(tmp_path: Path) -> None:
    outputs = {"verdict": "pass", "report": "", "changed": '["a"]', "odd": "x\nPATH=/tmp"}
    JenkinsHost(JOB).tell(JobReport(outputs=outputs, directory=tmp_path))
    assert (tmp_path / "ci-outputs.env").read_text() == "TUNEGATE_VERDICT=pass\n"


def test_a_controller_alone_is_no_build() -> None:
    assert not JenkinsHost.is_here({"JENKINS_URL": "https://ci.example.org/"})


def test_there_is_nothing_to_comment_on() -> None:
    host = JenkinsHost(JOB)
    with pytest.raises(HostRefusedError, match="Jenkins has no comments"):
        host.comment(host.event(AskedRevisions()), "out", "text")
