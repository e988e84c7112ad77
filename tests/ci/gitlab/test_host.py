import json
from pathlib import Path

import pytest

from tests.ci.gitlab.gitlab_server import TOKEN, gitlab_server
from tunegate.ci.gitlab.host import GitLabHost
from tunegate.ci.protocol import Annotation, HostRefusedError, JobEvent, JobReport, Links, Usual

REQUEST = JobEvent(revisions=Usual(), pull_request=7)
JOB = "https://gitlab.example/a/b/-/jobs/9"


def test_a_job_of_gitlab_has_a_page_and_a_report_among_its_artifacts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    host = GitLabHost({"CI_JOB_URL": JOB, "CI_PROJECT_DIR": str(tmp_path)})
    report = f"{JOB}/artifacts/file/out%20%281%29/report.html"
    assert host.links(Path("out (1)")) == Links(run=JOB, report=report)
    assert host.links(Path("/elsewhere")) == Links(run=JOB)
    project = "https://gitlab.example/a/b"
    known = GitLabHost({"CI_PROJECT_URL": project}).links(Path("out"))
    assert known == Links(commit=f"{project}/-/commit/")
    assert GitLabHost({}).links(Path("out")) == Links()


def test_outputs_are_a_dotenv_report_that_no_value_can_add_a_line_to(tmp_path: Path) -> None:
    outputs = {
        "verdict": "pass",
        "report": "",
        "any": "true",
        "changed": '["a"]',
        "odd": "x\nPATH=/tmp",
        "long": "y" * 5000,
    }
    GitLabHost({}).tell(JobReport(outputs=outputs, directory=tmp_path))
    assert (tmp_path / "ci-outputs.env").read_text() == "TUNEGATE_VERDICT=pass\nTUNEGATE_ANY=true\n"


def test_the_page_of_a_job_links_to_a_report_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    host = GitLabHost({"CI_JOB_URL": JOB, "CI_PROJECT_DIR": str(tmp_path)})
    written = tmp_path / "ci-links.json"
    host.tell(JobReport(outputs={"report": "report.html"}, directory=tmp_path))
    (link,) = json.loads(written.read_text())["tunegate"]
    assert link["external_link"]["url"] == f"{JOB}/artifacts/file/report.html"
    host.tell(JobReport(outputs={"verdict": "error"}, directory=tmp_path))
    assert json.loads(written.read_text()) == {"tunegate": []}


def test_an_annotation_is_one_line_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    text = "bad\n\x1b[0Ksection_start:1:x\r\x1b[0K"
    annotation = Annotation(level="error", title="tunegate", text=text, file="a.yaml", line=4)
    GitLabHost({}).tell(JobReport(annotations=[annotation]))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("tunegate: error: a.yaml:4: bad")
    assert "\x1b" not in shown.err


def test_a_note_is_written_where_a_token_is_and_says_what_is_missing_elsewhere() -> None:
    with gitlab_server() as server:
        environment = {
            "CI_API_V4_URL": server.url,
            "CI_MERGE_REQUEST_PROJECT_ID": "3",
            "TUNEGATE_GITLAB_TOKEN": f" {TOKEN}\n",
        }
        GitLabHost(environment).comment(REQUEST, "o", "report")
        assert len(server.notes) == 1
        for missing in environment:
            lacking = {**environment, missing: ""}
            with pytest.raises(HostRefusedError) as caught:
                GitLabHost(lacking).comment(REQUEST, "o", "report")
            assert TOKEN not in str(caught.value)
        with pytest.raises(HostRefusedError, match="of no merge request"):
            GitLabHost(environment).comment(JobEvent(revisions=Usual()), "o", "report")
        assert len(server.notes) == 1
