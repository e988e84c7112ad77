"""The check run over real HTTP."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.ci.github.github_server import GitHubServer, github_server
from tunegate.ci import http as rest_api
from tunegate.ci.github.api import MAX_CHECK_ANNOTATIONS
from tunegate.ci.github.host import GitHubHost
from tunegate.ci.protocol import Annotation, JobProgress, JobReport, Outcome

CHECKS = "/repos/acme/models/check-runs"
BEGUN = JobProgress(name="", commit="a" * 40)
AT_MODEL = Annotation(level="error", title="t", text="slower", file="models/a.onnx", line=1)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_api, "FIRST_WAIT_SECONDS", 0.001)


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with github_server() as made:
        yield made


def host_of(server: GitHubServer, token: str = "ghs_secret") -> GitHubHost:
    page = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_RUN_ID": "5"}
    return GitHubHost({**server.variables, **page, "TUNEGATE_GITHUB_TOKEN": token})


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
def test_a_check_begins_and_is_concluded(
    server: GitHubServer, outcome: Outcome, conclusion: str
) -> None:
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


@pytest.mark.parametrize("status", [401, 403, 404, 422, 500])
def test_without_the_right_there_is_none_and_nobody_is_told(
    server: GitHubServer, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    server.always[f"POST {CHECKS}"] = (status, {})
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
        server.always[f"POST {CHECKS}"] = (201, answer)
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
    server.always[f"POST {CHECKS}"] = (503, {})
    environment = {**server.variables, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    GitHubHost(environment).tell(ended("failed"))
    assert (tmp_path / "summary").read_text() == "### Fail"
