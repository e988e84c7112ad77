"""The note over real HTTP, against a server that answers as GitLab does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ci.gitlab.gitlab_server import ANOTHER, ME, NOTES, TOKEN, GitLabServer, gitlab_server
from tunegate.ci import http as rest_api
from tunegate.ci.comments import report_marker
from tunegate.ci.gitlab.host import MAX_NOTE_CHARACTERS, Notes
from tunegate.ci.protocol import HostRefusedError, Secret


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_api, "FIRST_WAIT_SECONDS", 0.001)


@pytest.fixture
def server() -> Iterator[GitLabServer]:
    with gitlab_server() as made:
        yield made


def publish(server: GitLabServer, text: str, token: str = TOKEN) -> None:
    Notes(server.url, 3, 7, "o", Secret(token)).publish(text)


def test_the_first_report_is_a_note_and_the_next_replaces_it(server: GitLabServer) -> None:
    publish(server, "first")
    publish(server, "second")
    (note,) = server.notes
    assert note["body"] == f"{report_marker('o')}\nsecond"
    assert server.requests[-1] == f"PUT {NOTES}/100"


def test_our_note_is_found_behind_many_others(server: GitLabServer) -> None:
    for number in range(250):
        server.planted(f"note {number}", ANOTHER)
    server.planted(f"{report_marker('o')}\nold", ME)
    publish(server, "new")
    assert server.notes[-1]["body"].endswith("new")
    assert len(server.notes) == 251


def test_a_marker_of_somebody_else_is_not_ours(server: GitLabServer) -> None:
    server.planted(f"{report_marker('o')}\nplanted", ANOTHER)
    server.planted(f"{report_marker('another')}\nours, of another directory", ME)
    publish(server, "report")
    assert len(server.notes) == 3
    assert server.notes[0]["body"].endswith("planted")


def test_no_line_of_a_note_is_a_command(server: GitLabServer) -> None:
    publish(server, "report\n/merge\n/assign @root")
    assert "\n/" not in server.notes[0]["body"]


def test_a_note_stays_within_gitlabs_limit(server: GitLabServer) -> None:
    publish(server, "x" * 2_000_000)
    assert len(server.notes[0]["body"]) <= MAX_NOTE_CHARACTERS


def test_a_note_that_is_deleted_meanwhile_is_written_anew(server: GitLabServer) -> None:
    server.planted(f"{report_marker('o')}\nold", ME)
    server.answers[f"PUT {NOTES}/100"] = (404, {})
    publish(server, "new")
    assert server.notes[-1]["body"].endswith("new")
    assert len(server.notes) == 2


def test_an_answer_that_is_lost_writes_no_second_note(server: GitLabServer) -> None:
    server.answers[f"POST {NOTES}"] = (500, {})
    publish(server, "report")
    assert len(server.notes) == 1


def test_another_token_is_refused_and_not_shown(server: GitLabServer) -> None:
    with pytest.raises(HostRefusedError, match=r"GitLab answered 401 to GET /user") as caught:
        publish(server, "report", "glpat-wrong")
    assert "glpat" not in str(caught.value)


@pytest.mark.parametrize("status", [301, 403, 404, 429])
def test_a_refusal_says_the_status_and_no_secret(server: GitLabServer, status: int) -> None:
    server.answers[f"POST {NOTES}"] = (status, {"message": TOKEN})
    with pytest.raises(HostRefusedError, match=f"answered {status} to POST") as caught:
        publish(server, "report")
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("GET /api/v4/user", []),
        ("GET /api/v4/user", {"id": True}),
        ("GET /api/v4/user", {"id": "41"}),
        (f"GET {NOTES}", {"notes": []}),
        (f"GET {NOTES}", None),
        (f"GET {NOTES}", [{"id": "../1", "author": ME, "body": report_marker("o")}]),
    ],
)
def test_an_answer_of_another_shape_is_a_refusal(
    server: GitLabServer, asked: str, answer: object
) -> None:
    server.answers[asked] = (200, answer)
    with pytest.raises(HostRefusedError, match="GitLab answered with"):
        publish(server, "report")
    assert not server.notes


def test_odd_notes_of_others_are_passed_over(server: GitLabServer) -> None:
    odd: list[object] = [None, 7, {}, {"author": None}, {"author": ME, "body": None}]
    server.answers[f"GET {NOTES}"] = (200, odd)
    publish(server, "report")
    assert len(server.notes) == 1
