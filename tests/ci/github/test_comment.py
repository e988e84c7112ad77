"""The comment over real HTTP, against a server that answers as GitHub does."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.ci.github.github_server import GitHubServer, github_server
from tunegate.ci.comments import report_marker
from tunegate.ci.github.api import (
    MAX_CHECK_ANNOTATIONS,
    MAX_COMMENT_CHARACTERS,
    Comments,
    job_token,
    login_of,
    open_api,
)
from tunegate.ci.github.host import GitHubHost
from tunegate.ci.protocol import Annotation, HostRefusedError, JobProgress, JobReport, Outcome
from tunegate.errors import OutputError

COMMENTS = "/repos/acme/models/issues/7/comments"
FIRST = report_marker("o")
WITHOUT_ID = {"body": FIRST, "user": {"login": "github-actions[bot]"}}
ODD_IDS = [[WITHOUT_ID], [{**WITHOUT_ID, "id": float("inf")}]]


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with github_server() as made:
        yield made


def publish(server: GitHubServer, name: str, text: str, *, updates_only: bool = False) -> None:
    environment = {**server.variables, "TUNEGATE_GITHUB_TOKEN": "ghs_secret"}
    token = job_token(environment)
    api = open_api(environment, token)
    comments = Comments(api, "acme/models", 7, name, login_of(environment, token, api))
    comments.publish(text, updates_only=updates_only)


def test_our_comment_is_found_behind_many_others(server: GitHubServer) -> None:
    for number in range(250):
        server.planted(f"comment {number}", "octocat")
    server.planted(f"{FIRST}\nold")
    publish(server, "o", "new")
    assert server.comments[-1]["body"] == f"{FIRST}\nnew"
    assert len(server.comments) == 251


@pytest.mark.parametrize("author", ["mallory", "another-app[bot]", "github-actions"])
def test_a_marker_that_somebody_else_planted_is_not_ours(server: GitHubServer, author: str) -> None:
    server.planted(f"{FIRST}\nplanted", author)
    publish(server, "o", "report")
    assert [each["user"]["login"] for each in server.comments] == [author, "github-actions[bot]"]
    assert server.comments[0]["body"].endswith("planted")
    assert not server.made("PATCH")


@pytest.fixture
def of_nobody(server: GitHubServer) -> GitHubServer:
    """A server that says to no token whose it is, as Gitea to that of a job."""
    server.answers["POST /graphql"] = (404, {})
    server.answers["GET /user"] = (403, {})
    return server


@pytest.mark.parametrize(
    ("login", "number", "other", "writes"),
    [
        ("gitea-actions", -2, "gitea-actions", 1),
        ("forgejo-actions", -2, "forgejo-actions", 1),
        ("github-actions[bot]", 4, "github-actions", 1),
        ("octocat", 5, "gitea-actions", 3),
    ],
)
def test_a_job_that_may_not_ask_who_it_is_keeps_one_comment_beside_a_planted_marker(
    of_nobody: GitHubServer, login: str, number: int, other: str, writes: int
) -> None:
    of_nobody.login, of_nobody.user_id = login, number
    of_nobody.planted(f"{FIRST}\nplanted", other, 17)
    for text in ("first", "second", "third"):
        publish(of_nobody, "o", text)
    assert [each["body"] for each in of_nobody.comments] == [f"{FIRST}\nplanted", f"{FIRST}\nthird"]
    assert of_nobody.made("POST").count(f"POST {COMMENTS}") == writes


def test_nobodys_comment_is_only_updated_where_that_is_asked(of_nobody: GitHubServer) -> None:
    of_nobody.login, of_nobody.user_id = "octocat", 5
    publish(of_nobody, "o", "first", updates_only=True)
    of_nobody.planted(f"{FIRST}\nplanted", "mallory", 17)
    publish(of_nobody, "o", "second", updates_only=True)
    assert [each["body"] for each in of_nobody.comments] == [f"{FIRST}\nplanted"]
    publish(of_nobody, "o", "third")
    publish(of_nobody, "o", "fourth", updates_only=True)
    expected = [f"{FIRST}\nplanted", f"{FIRST}\nfourth"]
    assert [each["body"] for each in of_nobody.comments] == expected


def test_nothing_is_written_where_only_an_earlier_comment_is_updated(server: GitHubServer) -> None:
    publish(server, "o", "report", updates_only=True)
    assert not server.comments
    server.planted(f"{FIRST}\nold")
    publish(server, "o", "report", updates_only=True)
    assert [each["body"] for each in server.comments] == [f"{FIRST}\nreport"]


@pytest.mark.parametrize("status", [404, 410])
def test_a_comment_deleted_meanwhile_is_written_anew(server: GitHubServer, status: int) -> None:
    server.planted(f"{FIRST}\nold")
    server.answers["PATCH /repos/acme/models/issues/comments/100"] = (status, {})
    publish(server, "o", "new")
    assert server.comments[-1]["body"] == f"{FIRST}\nnew"


def test_an_answer_that_is_lost_writes_no_second_comment(server: GitHubServer) -> None:
    server.lost[f"POST {COMMENTS}"] = 0
    publish(server, "o", "report")
    assert len(server.comments) == 1
    assert server.made("POST").count(f"POST {COMMENTS}") == 1


@pytest.mark.parametrize("status", [0, 500, 502, 503])
def test_a_comment_that_was_not_written_is_written_after_another_look(
    server: GitHubServer, status: int
) -> None:
    server.first[f"POST {COMMENTS}"] = [(status, {}, {})]
    publish(server, "o", "report")
    assert len(server.comments) == 1
    assert server.made("GET").count(f"GET {COMMENTS}") == 2


def test_a_comment_stays_within_githubs_limit_and_cuts_no_table(server: GitHubServer) -> None:
    row = f"| {'x' * 40} | {'y' * 40} |"
    table = "\n".join(["| a | b |", "| --- | --- |", *[row] * 2000])
    publish(server, "o", f"### Pass\n\n#### Models\n\n{table}\n")
    body = server.comments[0]["body"]
    assert len(body) <= MAX_COMMENT_CHARACTERS < 65_536
    rows = [line for line in body.splitlines() if line.startswith("| x")]
    assert set(rows) == {row}
    assert f"Models ({2000 - len(rows)} rows)" in body


@pytest.mark.parametrize("status", [301, 401, 403, 404, 422, 429, 500])
def test_a_refusal_says_the_status_and_no_secret(server: GitHubServer, status: int) -> None:
    server.answers[f"POST {COMMENTS}"] = (status, {"message": "ghs_secret"})
    with pytest.raises(HostRefusedError, match=f"GitHub answered {status} to POST") as caught:
        publish(server, "o", "report")
    assert "ghs_secret" not in str(caught.value)
    assert ("has no right to it" in str(caught.value)) == (status == 403)


@pytest.mark.parametrize("answer", [None, 7, "x", {}, {"message": "x"}, [None], [[]], *ODD_IDS])
def test_an_answer_of_another_shape_fails(server: GitHubServer, answer: object) -> None:
    server.answers[f"GET {COMMENTS}"] = (200, answer)
    with pytest.raises(HostRefusedError, match=r"no list of comments|without an id"):
        publish(server, "o", "report")


# The check of a commit.


CHECKS = "/repos/acme/models/check-runs"
BEGUN = JobProgress(name="", commit="a" * 40)
AT_MODEL = Annotation(level="error", title="t", text="slower", file="models/a.onnx", line=1)


def host_of(server: GitHubServer, token: str = "ghs_secret", **files: str) -> GitHubHost:
    page = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_RUN_ID": "5"}
    return GitHubHost({**server.variables, **page, "TUNEGATE_GITHUB_TOKEN": token, **files})


def ended(outcome: Outcome, **more: object) -> JobReport:
    progress = msgspec.structs.replace(BEGUN, outcome=outcome, title="Fail: 1 check, 1 fail")
    report = JobReport(progress=progress, summary="### Fail", annotations=[AT_MODEL])
    return msgspec.structs.replace(report, **more)


@pytest.mark.parametrize(
    ("outcome", "conclusion"),
    [
        ("passed", "success"),
        ("nothing to check", "neutral"),
        ("failed", "failure"),
        ("waits", "action_required"),
        ("cancelled", "cancelled"),
    ],
)
def test_a_check_begins_and_ends(server: GitHubServer, outcome: Outcome, conclusion: str) -> None:
    host = host_of(server)
    host.tell(JobReport(progress=BEGUN))
    (check,) = server.checks
    assert check == {
        "id": 1,
        "name": "tunegate verdict",
        "head_sha": "a" * 40,
        "details_url": "https://github.com/acme/models/actions/runs/5",
        "status": "in_progress",
    }
    host.tell(ended(outcome))
    assert (check["status"], check["conclusion"]) == ("completed", conclusion)
    assert check["output"] == {
        "title": "Fail: 1 check, 1 fail",
        "summary": "### Fail",
        "annotations": [
            {
                "path": "models/a.onnx",
                "start_line": 1,
                "end_line": 1,
                "annotation_level": "failure",
                "title": "t",
                "message": "slower",
            }
        ],
    }


def test_a_check_ends_where_the_files_of_the_runner_cannot_be_written(
    server: GitHubServer, tmp_path: Path
) -> None:
    gone = str(tmp_path / "gone" / "summary")
    host = host_of(server, GITHUB_OUTPUT="/dev/full", GITHUB_STEP_SUMMARY=gone)
    host.tell(JobReport(progress=BEGUN))
    with pytest.raises(OutputError, match=f"OUTPUT: /dev/full .*No space.*SUMMARY: {gone} "):
        host.tell(ended("failed", outputs={"verdict": "fail"}))
    assert [check["status"] for check in server.checks] == ["completed"]


@pytest.mark.parametrize("status", [401, 403, 404, 422, 500])
def test_without_the_right_there_is_none_and_nobody_is_told(
    server: GitHubServer, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers[f"POST {CHECKS}"] = (status, {})
    host = host_of(server)
    host.tell(JobReport(progress=BEGUN))
    host.tell(ended("failed", annotations=[]))
    assert server.requests == [f"POST {CHECKS}"]
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")


def test_without_a_token_nobody_is_asked(server: GitHubServer) -> None:
    host = host_of(server, token="")
    host.tell(JobReport(progress=BEGUN))
    host.tell(ended("failed"))
    assert not server.requests


def test_an_answer_of_another_shape_is_no_check(server: GitHubServer) -> None:
    answers: list[object] = [None, [], {"id": "../1"}, {"id": True}]
    for answer in answers:
        server.answers[f"POST {CHECKS}"] = (201, answer)
        host = host_of(server)
        host.tell(JobReport(progress=BEGUN))
        host.tell(ended("failed"))
    assert not server.made("PATCH")


def test_what_is_long_stays_within_the_limits_of_the_api(server: GitHubServer) -> None:
    host = host_of(server)
    host.tell(JobReport(progress=BEGUN))
    nowhere = Annotation(level="error", title="t", text="no file")
    many = [nowhere, *[msgspec.structs.replace(AT_MODEL, text="x" * 100_000)] * 99]
    table = "| a |\n| --- |\n" + f"| {'x' * 90} |\n" * 2000
    host.tell(ended("failed", annotations=many, summary=f"### Fail\n\n#### Models\n\n{table}"))
    output = server.checks[0]["output"]
    assert len(output["annotations"]) == MAX_CHECK_ANNOTATIONS
    assert len(output["summary"]) < 65_535
    assert max(len(each["message"]) for each in output["annotations"]) < 65_535


def test_outputs_and_summary_are_written_before_the_api_is_asked(
    server: GitHubServer, tmp_path: Path
) -> None:
    server.answers[f"POST {CHECKS}"] = (503, {})
    environment = {**server.variables, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    GitHubHost(environment).tell(ended("failed"))
    assert (tmp_path / "summary").read_text() == "### Fail"
