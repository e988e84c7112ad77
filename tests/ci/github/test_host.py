import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ci.github.github_server import GitHubServer, github_server
from tunegate.ci.github.api import job_token, login_of, open_api
from tunegate.ci.github.host import GitHubHost, command_of, commands_stopped, output
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


ENVIRONMENT = {"TUNEGATE_GITHUB_TOKEN": " ghs_secret\n"}


def login(server: GitHubServer, **more: str) -> str:
    environment = {**ENVIRONMENT, **server.variables, **more}
    token = job_token(environment)
    return login_of(environment, token, open_api(environment, token))


def test_a_server_without_the_other_api_is_asked_for_the_user() -> None:
    with github_server() as server:
        server.login = "octocat"
        assert login(server, GITHUB_GRAPHQL_URL="") == "octocat"
        server.answers["POST /graphql"] = (403, {})
        assert login(server) == "octocat"


@pytest.mark.parametrize("said", [None, [], {"data": None}, {"data": {"viewer": {"login": "a b"}}}])
def test_where_neither_tells_nobody_knows(said: object) -> None:
    with github_server() as server:
        server.answers["POST /graphql"] = (200, said)
        assert login(server) == ""


def test_a_token_is_never_shown() -> None:
    assert "ghs_secret" not in repr(job_token(ENVIRONMENT))


@given(st.text())
def test_an_annotation_is_one_line_whatever_is_in_it(text: str) -> None:
    line = command_of(Annotation(level="error", title=text, text=text, file=text, line=1))
    assert "\n" not in line
    assert "\r" not in line
    assert line.startswith("::error ")


@given(st.text())
def test_an_output_ends_at_its_own_delimiter_only(value: str) -> None:
    lines = output("name", value).split("\n")
    assert lines[-2] == lines[0].removeprefix("name<<")
    assert "\n".join(lines[1:-2]) == value


def test_commands_are_stopped_by_a_token_nobody_knows_and_start_again() -> None:
    stream = io.StringIO()
    with commands_stopped(stream):
        stream.write("::error::planted\n")
    first, _, last = stream.getvalue().strip().split("\n")
    token = first.removeprefix("::stop-commands::")
    assert last == f"::{token}::"
    assert len(token) >= 32
