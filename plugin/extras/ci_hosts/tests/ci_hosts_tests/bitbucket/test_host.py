from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ci.json_server import serving

from ci_hosts_tests.bitbucket.bitbucket_server import REPORT, TOKEN, BitbucketServer
from ci_hosts_tests.recorded_environment import recorded_environment
from tunegate.ci.protocol import AskedRevisions, HostRefusedError, JobEvent, JobReport, Links, Usual
from tunegate_ci_hosts.bitbucket import comments, insight
from tunegate_ci_hosts.bitbucket.host import BitbucketHost

JOB = recorded_environment("bitbucket-pull-request")


def test_a_job_has_a_page() -> None:
    assert BitbucketHost(JOB).links(Path("o")) == Links(
        run="https://bitbucket.org/acme/models/pipelines/results/88",
        commit="https://bitbucket.org/acme/models/commits/",
    )


def test_outputs_are_lines_that_no_value_can_add_to(tmp_path: Path) -> None:
    outputs = {"verdict": "pass", "report": "", "changed": '["a"]', "odd": "x\nPATH=/tmp"}
    BitbucketHost({}).tell(JobReport(outputs=outputs, directory=tmp_path))
    assert (tmp_path / "ci-outputs.env").read_text() == "TUNEGATE_VERDICT=pass\n"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BitbucketServer]:
    with serving(BitbucketServer()) as made:
        monkeypatch.setattr(comments, "API", made.url)
        monkeypatch.setattr(insight, "API", made.url)
        yield made


def test_a_comment_is_written_where_a_token_is_and_says_what_is_missing_elsewhere(
    server: BitbucketServer,
) -> None:
    event = BitbucketHost(JOB).event(AskedRevisions())
    BitbucketHost({**JOB, "TUNEGATE_BITBUCKET_TOKEN": f" {TOKEN}\n"}).comment(event, "o", "report")
    assert len(server.comments) == 1
    with pytest.raises(HostRefusedError, match="TUNEGATE_BITBUCKET_TOKEN is not set"):
        BitbucketHost(JOB).comment(event, "o", "report")
    with pytest.raises(HostRefusedError, match="of no pull request"):
        BitbucketHost(JOB).comment(JobEvent(revisions=Usual()), "o", "report")
    assert len(server.comments) == 1


def test_a_verdict_stands_beside_the_commit(
    server: BitbucketServer, capsys: pytest.CaptureFixture[str]
) -> None:
    job = {**JOB, "TUNEGATE_BITBUCKET_TOKEN": TOKEN}
    BitbucketHost(job).tell(JobReport(outputs={"verdict": "fail"}))
    (path,) = server.reports
    assert path == REPORT.format(commit=JOB["BITBUCKET_COMMIT"])
    assert server.reports[path]["result"] == "FAILED"
    BitbucketHost(JOB).tell(JobReport(outputs={"verdict": "pass"}))
    BitbucketHost(job).tell(JobReport())
    assert len(server.requests) == 1
    assert capsys.readouterr().err == ""


def test_what_bitbucket_refuses_is_a_line_of_the_log(
    server: BitbucketServer, capsys: pytest.CaptureFixture[str]
) -> None:
    job = {**JOB, "TUNEGATE_BITBUCKET_TOKEN": "ATCTT-another"}
    BitbucketHost(job).tell(JobReport(outputs={"verdict": "fail"}))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tunegate: no report beside the commit: Bitbucket answered 401 to PUT")
    assert "ATCTT" not in line
