from __future__ import annotations

from pathlib import Path

from ci_hosts_tests.recorded_environment import recorded_environment
from tunegate.ci.protocol import JobReport, Links
from tunegate_ci_hosts.circleci.host import CircleCiHost

JOB = recorded_environment("circleci-pull-request")


def test_a_job_has_a_page() -> None:
    assert CircleCiHost(JOB).links(Path("o")) == Links(run="https://circleci.com/gh/acme/models/3")


def test_outputs_are_lines_that_no_value_can_add_to(tmp_path: Path) -> None:
    outputs = {"verdict": "pass", "report": "", "changed": '["a"]', "odd": "x\nPATH=/tmp"}
    CircleCiHost({}).tell(JobReport(outputs=outputs, directory=tmp_path))
    assert (tmp_path / "ci-outputs.env").read_text() == "TUNEGATE_VERDICT=pass\n"
