"""Which pull request a fork's run is of, over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.ci.github.github_server import GitHubServer, github_server
from tunegate.ci.github.api import job_token, opened_api
from tunegate.ci.github.event import finished_run
from tunegate.ci.protocol import FinishedRun, HostRefusedError, Links, NothingToReportError
from tunegate.errors import ConfigError

TIP = "a" * 40
FORK = "mallory/models"
REPOSITORY = "acme/models"


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with github_server() as made:
        made.pulls = [pull()]
        yield made


def pull(number: object = 7, **more: Any) -> dict[str, Any]:  # noqa: ANN401 -- JSON
    head = {"sha": TIP, "repo": {"full_name": FORK}}
    base = {"repo": {"full_name": REPOSITORY}}
    return {"number": number, "state": "open", "head": head, "base": base, **more}


def payload(**more: Any) -> dict[str, Any]:  # noqa: ANN401 -- JSON
    run = {
        "id": 5,
        "event": "pull_request",
        "head_sha": TIP,
        "head_branch": "topic & more",
        "head_repository": {"full_name": FORK},
    }
    repository = {"full_name": REPOSITORY}
    return {"action": "completed", "repository": repository, "workflow_run": {**run, **more}}


def found(server: GitHubServer, event: Any, **more: str) -> FinishedRun:  # noqa: ANN401 -- JSON
    environment = {
        **server.variables,
        "GITHUB_EVENT_NAME": "workflow_run",
        "GITHUB_SERVER_URL": "https://github.com",
        **more,
    }
    api = opened_api(environment, job_token({"TUNEGATE_GITHUB_TOKEN": "t"}))
    return finished_run(environment, event, api)


def test_the_pull_request_is_that_of_the_head_commit(server: GitHubServer) -> None:
    run = "https://github.com/acme/models/actions/runs/5"
    assert found(server, payload()) == FinishedRun(
        pull_request=7, tip=TIP, source=FORK, links=Links(run=run, report=f"{run}#artifacts")
    )
    assert server.requests == ["GET /repos/acme/models/pulls"]


def test_a_branch_that_has_another_name_now_is_found_by_the_forks_commit(
    server: GitHubServer,
) -> None:
    server.always["GET /repos/acme/models/pulls"] = (200, [])
    assert found(server, payload()).pull_request == 7
    assert server.requests[-1] == f"GET /repos/{FORK}/commits/{TIP}/pulls"


@pytest.mark.parametrize(
    "other",
    [
        pull(state="closed"),
        pull(head={"sha": "b" * 40, "repo": {"full_name": FORK}}),
        pull(head={"sha": TIP, "repo": {"full_name": "eve/models"}}),
        pull(head={"sha": TIP, "repo": None}),
        pull(base={"repo": {"full_name": "mallory/models"}}),
        pull(number=0),
        pull(number=True),
        pull(number="7"),
        None,
        {},
    ],
    ids=str,
)
def test_no_other_pull_request_is_commented_on(server: GitHubServer, other: Any) -> None:  # noqa: ANN401 -- JSON
    server.pulls = [other]
    with pytest.raises(NothingToReportError, match="no open pull request has aaaaaaaaaaaa"):
        found(server, payload())
    server.pulls = [other, pull(9)]
    assert found(server, payload()).pull_request == 9


def test_two_pull_requests_of_one_commit_are_not_guessed_between(server: GitHubServer) -> None:
    server.pulls = [pull(7), pull(8)]
    with pytest.raises(NothingToReportError, match="any of #7, #8"):
        found(server, payload())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"event": "push"}, "not started by pull_request"),
        ({"head_repository": {"full_name": REPOSITORY}}, "not of a fork"),
    ],
)
def test_a_run_that_reports_itself_is_left_alone(
    server: GitHubServer, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(NothingToReportError, match=said):
        found(server, payload(**more))
    assert not server.requests


@pytest.mark.parametrize(
    "event",
    [
        {},
        {**payload(), "action": "requested"},
        {**payload(), "repository": {"full_name": "eve/models"}},
        {**payload(), "workflow_run": []},
        payload(head_sha="main"),
        payload(head_sha=7),
        payload(head_repository=None),
        payload(head_repository={"full_name": "a/b/../../c"}),
    ],
    ids=str,
)
def test_an_event_of_no_such_run_is_refused(server: GitHubServer, event: Any) -> None:  # noqa: ANN401 -- JSON
    with pytest.raises(ConfigError):
        found(server, event)
    assert not server.requests


def test_another_event_is_refused(server: GitHubServer) -> None:
    with pytest.raises(ConfigError, match="not by pull_request_target"):
        found(server, payload(), GITHUB_EVENT_NAME="pull_request_target")


@pytest.mark.parametrize("answer", [(403, {}), (200, {"message": "x"}), (200, None)])
def test_an_api_that_does_not_say_is_a_refusal(
    server: GitHubServer, answer: tuple[int, object]
) -> None:
    server.always["GET /repos/acme/models/pulls"] = answer
    with pytest.raises(HostRefusedError, match="GitHub answered"):
        found(server, payload())


def test_without_a_token_nobody_is_asked() -> None:
    environment = {"GITHUB_EVENT_NAME": "workflow_run", "GITHUB_REPOSITORY": REPOSITORY}
    with pytest.raises(HostRefusedError, match="no token"):
        finished_run(environment, payload(), None)
