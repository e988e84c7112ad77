from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ci.github import github_server
from tests.ci.github.github_server import GitHubServer
from tunegate.ci import protocol
from tunegate.ci.events import JudgedEvent, RefusedEvent
from tunegate.ci.github.api import job_token, open_api
from tunegate.ci.github.event import GITHUB_EVENTS, finished_run, github_event
from tunegate.errors import ConfigError

BASE, HEAD = "b" * 40, "a" * 40
REPOSITORY = {"full_name": "acme/models", "default_branch": "trunk"}


def event(
    name: str,
    payload: dict[str, Any],
    *,
    ref: str = "",
    asked: protocol.AskedRevisions | None = None,
) -> protocol.JobEvent:
    environment = {
        "GITHUB_EVENT_NAME": name,
        "GITHUB_REPOSITORY": "acme/models",
        "GITHUB_SHA": HEAD,
        "GITHUB_REF": ref,
    }
    content = {"repository": REPOSITORY, **payload}
    return github_event(environment, content, asked or protocol.AskedRevisions())


def pull_request(head_repository: str | None = "acme/models", **more: object) -> dict[str, Any]:
    return github_server.pull_request(BASE, HEAD, head_repository, **more)


def push(ref: str = "refs/heads/trunk", before: str = BASE, after: str = HEAD) -> dict[str, Any]:
    return {"ref": ref, "before": before, "after": after}


def test_a_pull_request_of_the_repository_writes_its_own_zone() -> None:
    found = event("pull_request", pull_request())
    assert found.revisions == protocol.MergeCommit(base_tip=BASE, head_tip=HEAD)
    assert (found.zone, found.tip, found.pull_request) == ("pr/acme/models/7", HEAD, 7)


@pytest.mark.parametrize("head", ["mallory/models", None])
def test_a_fork_also_a_deleted_one_writes_nothing(head: str | None) -> None:
    assert event("pull_request", pull_request(head)).zone is None


@pytest.mark.parametrize("action", ["opened", "labeled", "edited", "converted_to_draft"])
def test_whatever_happens_to_an_open_pull_request_it_is_the_same_question(action: str) -> None:
    payload = {**pull_request(draft=True), "action": action}
    assert event("pull_request", payload) == event("pull_request", pull_request())


@pytest.mark.parametrize(
    "payload", [{**pull_request(), "action": "closed"}, pull_request(state="closed")]
)
def test_a_closed_pull_request_is_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="7 is closed"):
        event("pull_request", payload)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"pull_request": None},
        {"pull_request": {"number": 7}},
        pull_request(base={"sha": "main"}),
        pull_request(head={"sha": "--upload-pack=x"}),
        pull_request(number="7"),
        {**pull_request(), "repository": {"full_name": "acme/others"}},
    ],
)
def test_a_payload_that_lacks_or_contradicts_the_job_is_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="the event cannot be used"):
        event("pull_request", payload)


def test_a_push_to_another_branch_does_not_and_is_compared_with_where_it_left_the_default() -> None:
    found = event("push", push("refs/heads/feat/é"))
    assert str(found.zone).startswith("pr/acme/models/branch_feat__-")
    assert found.revisions == protocol.Usual(default_branch="trunk", is_here_enough=True)


@pytest.mark.parametrize("payload", [push(after="0" * 40), {**push(), "deleted": True}])
def test_a_push_that_deletes_is_refused(payload: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="was deleted"):
        event("push", payload)


@pytest.mark.parametrize(
    ("name", "payload"), [("push", push("refs/tags/trunk")), ("release", {"action": "published"})]
)
def test_a_tag_is_compared_with_the_release_before_or_not_at_all(
    name: str, payload: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match="a tag says nothing of what to compare with"):
        event(name, payload)
    found = event(name, payload, asked=protocol.AskedRevisions(since_release=True))
    assert (found.revisions, found.checked_out, found.zone) == (protocol.Usual(), HEAD, None)


@pytest.mark.parametrize("ref", ["refs/notes/commits", "refs/pull/7/head", "trunk", ""])
def test_a_push_of_neither_branch_nor_tag_is_refused_even_with_a_named_base(ref: str) -> None:
    with pytest.raises(ConfigError, match="names no branch and no tag"):
        event("push", push(ref), asked=protocol.AskedRevisions(since_release=True))


def test_a_merge_queue_names_both_commits() -> None:
    found = event("merge_group", {"merge_group": {"base_sha": BASE, "head_sha": HEAD}})
    assert found.revisions == protocol.Range(base=BASE, head=HEAD)
    assert (found.checked_out, found.zone) == (HEAD, "pr/acme/models/queue")


def test_a_schedule_is_about_the_default_branch() -> None:
    found = event("schedule", {})
    assert found.revisions == protocol.Usual(default_branch="trunk", is_on_it=True)
    assert (found.checked_out, found.zone) == (HEAD, "main")


@pytest.mark.parametrize(
    ("ref", "zone"),
    [
        ("refs/heads/trunk", "main"),
        ("refs/heads/topic", "pr/acme/models/branch_topic"),
        ("refs/tags/trunk", None),
        ("", None),
    ],
)
def test_a_run_by_hand_may_write_what_a_push_to_its_branch_may(ref: str, zone: str | None) -> None:
    assert event("workflow_dispatch", {}, ref=ref).zone == zone


def test_a_head_that_somebody_gives_does_not_teach_main() -> None:
    asked = protocol.AskedRevisions(head="c" * 40)
    assert event("push", push(), asked=asked).zone is None
    assert event("pull_request", pull_request(), asked=asked).zone == "pr/acme/models/7"


REFUSED = [name for name, row in GITHUB_EVENTS.items() if isinstance(row, RefusedEvent)]


@pytest.mark.parametrize("name", [*REFUSED, "", "invented"])
def test_an_event_that_compares_nothing_is_refused_with_what_to_use_instead(name: str) -> None:
    with pytest.raises(ConfigError, match=r"(Use|Call|use|give) .*\w") as caught:
        event(name, pull_request())
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", REFUSED)
def test_who_gives_both_revisions_says_what_an_event_means_and_writes_nothing(name: str) -> None:
    found = event(name, pull_request(), asked=protocol.AskedRevisions(base=BASE, head=HEAD))
    assert (found.zone, found.tip) == (None, HEAD)
    with pytest.raises(ConfigError):
        event(name, pull_request(), asked=protocol.AskedRevisions(head=HEAD))


def test_every_event_that_is_judged_can_be_read() -> None:
    judged = {name for name, row in GITHUB_EVENTS.items() if isinstance(row, JudgedEvent)}
    assert judged == {
        *("pull_request", "merge_group", "push", "schedule", "workflow_dispatch", "release")
    }


PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "github.md"


def test_every_event_is_on_the_page() -> None:
    page = PAGE.read_text()
    assert [name for name in GITHUB_EVENTS if f"`{name}`" not in page] == []


# Which pull request a fork's run is of, over real HTTP.

TIP = "a" * 40
FORK = "mallory/models"
FINISHED_RUN_REPOSITORY = "acme/models"


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with github_server.github_server() as made:
        made.pulls = [pull()]
        yield made


def pull(number: object = 7, **more: Any) -> dict[str, Any]:  # noqa: ANN401 -- JSON
    head = {"sha": TIP, "repo": {"full_name": FORK}}
    base = {"repo": {"full_name": FINISHED_RUN_REPOSITORY}}
    return {"number": number, "state": "open", "head": head, "base": base, **more}


def payload(**more: Any) -> dict[str, Any]:  # noqa: ANN401 -- JSON
    run = {
        "id": 5,
        "event": "pull_request",
        "head_sha": TIP,
        "head_branch": "topic & more",
        "head_repository": {"full_name": FORK},
    }
    repository = {"full_name": FINISHED_RUN_REPOSITORY}
    return {"action": "completed", "repository": repository, "workflow_run": {**run, **more}}


def run_of(server: GitHubServer, event: Any, **more: str) -> protocol.FinishedRun:  # noqa: ANN401 -- JSON
    environment = {
        **server.variables,
        "GITHUB_EVENT_NAME": "workflow_run",
        "GITHUB_SERVER_URL": "https://github.com",
        **more,
    }
    api = open_api(environment, job_token({"TUNEGATE_GITHUB_TOKEN": "t"}))
    return finished_run(environment, event, api)


def test_the_pull_request_is_that_of_the_head_commit(server: GitHubServer) -> None:
    run = "https://github.com/acme/models/actions/runs/5"
    assert run_of(server, payload()) == protocol.FinishedRun(
        pull_request=7,
        tip=TIP,
        source=FORK,
        links=protocol.Links(run=run, report=f"{run}#artifacts"),
    )
    assert server.requests == ["GET /repos/acme/models/pulls"]


def test_a_branch_of_another_name_is_found_by_the_forks_commit(server: GitHubServer) -> None:
    server.answers["GET /repos/acme/models/pulls"] = (200, [])
    assert run_of(server, payload()).pull_request == 7
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
    with pytest.raises(
        protocol.NothingToReportError, match="no open pull request has aaaaaaaaaaaa"
    ):
        run_of(server, payload())
    server.pulls = [other, pull(9)]
    assert run_of(server, payload()).pull_request == 9


def test_two_pull_requests_of_one_commit_are_not_guessed_between(server: GitHubServer) -> None:
    server.pulls = [pull(7), pull(8)]
    with pytest.raises(protocol.NothingToReportError, match="any of #7, #8"):
        run_of(server, payload())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"event": "push"}, "not started by pull_request"),
        ({"head_repository": {"full_name": FINISHED_RUN_REPOSITORY}}, "not of a fork"),
    ],
)
def test_a_run_that_reports_itself_is_left_alone(
    server: GitHubServer, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(protocol.NothingToReportError, match=said):
        run_of(server, payload(**more))
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
        run_of(server, event)
    assert not server.requests


def test_another_event_is_refused(server: GitHubServer) -> None:
    with pytest.raises(ConfigError, match="not by pull_request_target"):
        run_of(server, payload(), GITHUB_EVENT_NAME="pull_request_target")


@pytest.mark.parametrize("answer", [(403, {}), (200, {"message": "x"}), (200, None)])
def test_an_api_that_is_silent_refuses(server: GitHubServer, answer: tuple[int, object]) -> None:
    server.answers["GET /repos/acme/models/pulls"] = answer
    with pytest.raises(protocol.HostRefusedError, match="GitHub answered"):
        run_of(server, payload())


def test_without_a_token_nobody_is_asked() -> None:
    environment = {
        "GITHUB_EVENT_NAME": "workflow_run",
        "GITHUB_REPOSITORY": FINISHED_RUN_REPOSITORY,
    }
    with pytest.raises(protocol.HostRefusedError, match="no token"):
        finished_run(environment, payload(), None)
