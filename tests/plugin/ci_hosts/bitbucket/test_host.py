from __future__ import annotations

from pathlib import Path

from tests.plugin.ci_hosts.recorded_environment import recorded_environment
from tunegate.ci_hosts.bitbucket.host import BitbucketHost
from tunegate.ci_hosts.protocol import JobReport, Links

JOB = recorded_environment("bitbucket-pull-request")


def test_a_job_has_a_page() -> None:
    assert BitbucketHost(JOB).links(Path("o")) == Links(
        run="https://bitbucket.org/acme/models/pipelines/results/88"
    )


def test_outputs_are_lines_that_no_value_can_add_to(tmp_path: Path) -> None:
    outputs = {"verdict": "pass", "report": "", "changed": '["a"]', "odd": "x\nPATH=/tmp"}
    BitbucketHost({}).tell(JobReport(outputs=outputs, directory=tmp_path))
    assert (tmp_path / "ci-outputs.env").read_text() == "TUNEGATE_VERDICT=pass\n"
