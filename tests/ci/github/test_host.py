from __future__ import annotations

from pathlib import Path

import pytest

from tests.ci.github.github_server import github_server
from tunegate.ci.github.host import GitHubHost
from tunegate.ci.protocol import Annotation, AskedRevisions, JobEvent, JobReport, Links, Usual
from tunegate.errors import ConfigError

REQUEST = JobEvent(revisions=Usual(), pull_request=7)


def test_a_job_has_a_page_where_all_three_parts_of_its_address_are_known() -> None:
    parts = {"GITHUB_SERVER_URL": "https://ghes", "GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "1"}
    run = "https://ghes/a/b/actions/runs/1"
    commit = "https://ghes/a/b/commit/"
    found = GitHubHost(parts).links(Path())
    assert found == Links(run=run, report=f"{run}#artifacts", commit=commit)
    kept = GitHubHost({**parts, "TUNEGATE_REPORT_URL": "https://pages/7"}).links(Path())
    assert kept == Links(run=run, report="https://pages/7", commit=commit)
    for name in parts:
        assert GitHubHost({**parts, name: ""}).links(Path()) == Links()


def test_outputs_and_the_summary_go_to_the_files_of_the_runner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary"}
    environment = {name: str(tmp_path / file) for name, file in files.items()}
    many = [Annotation(level="error", title="t", text=str(n)) for n in range(30)]
    report = JobReport(outputs={"verdict": "fail"}, annotations=many, summary="page")
    GitHubHost(environment).tell(report)
    assert (tmp_path / "output").read_text().startswith("verdict<<")
    assert (tmp_path / "summary").read_text() == "page"
    assert capsys.readouterr().out.splitlines() == [f"::error title=t::{n}" for n in range(10)]


@pytest.mark.parametrize("content", ["{", "[]", "7", "[" * 100_000, None])
def test_an_event_that_cannot_be_read_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "event.json"
    if content is not None:
        path.write_text(content)
    environment = {"GITHUB_EVENT_PATH": str(path), "GITHUB_EVENT_NAME": "push"}
    with pytest.raises(ConfigError, match="GITHUB_EVENT_PATH"):
        GitHubHost(environment).event(AskedRevisions())


def test_without_a_token_or_a_pull_request_the_api_is_not_called() -> None:
    with github_server() as server:
        environment = {"GITHUB_API_URL": server.url, "GITHUB_REPOSITORY": "a/b"}
        GitHubHost(environment).comment(REQUEST, "o", "report")
        with_token = GitHubHost({**environment, "TUNEGATE_GITHUB_TOKEN": "t"})
        with_token.comment(JobEvent(revisions=Usual()), "o", "report")
        assert not server.requests
