"""The comment over real HTTP, against a server that answers as GitHub does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tunegate.ci_hosts.github.comment import MAX_COMMENT_CHARACTERS, Comments
from tunegate.ci_hosts.protocol import HostRefusedError
from tunegate.ci_hosts.report_marker import report_marker
from tunegate.ci_hosts.secret import Secret


class FakeGitHub(ThreadingHTTPServer):
    """Comments of one pull request, 100 a page."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.comments: list[dict[str, Any]] = []
        self.refuse_with = 0
        self.listed: object = "comments"
        self.requests: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeGitHub

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        page, size = int(query["page"][0]), int(query["per_page"][0])
        found: object = self.server.comments[(page - 1) * size : page * size]
        self._answer(found if self.server.listed == "comments" else self.server.listed)

    def do_POST(self) -> None:
        comment = {
            "id": len(self.server.comments) + 1,
            "body": self._body(),
            "user": {"type": "Bot"},
        }
        if not self.server.refuse_with:
            self.server.comments.append(comment)
        self._answer(comment)

    def do_PATCH(self) -> None:
        identity = int(self.path.rsplit("/", 1)[1])
        found = next(c for c in self.server.comments if c["id"] == identity)
        found["body"] = self._body()
        self._answer(found)

    def _body(self) -> str:
        length = int(self.headers["Content-Length"])
        return str(json.loads(self.rfile.read(length))["body"])

    def _answer(self, content: object) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        body = json.dumps(content).encode()
        self.send_response(self.server.refuse_with or 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        return


@pytest.fixture
def server() -> Iterator[FakeGitHub]:
    with FakeGitHub() as made:
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.shutdown()


def publish(server: FakeGitHub, name: str, text: str) -> None:
    Comments(server.url, "acme/models", 7, Secret("ghs_secret")).publish(name, text)


def test_the_first_report_is_created_and_the_next_updates_it(server: FakeGitHub) -> None:
    publish(server, ".tunegate", "first")
    publish(server, ".tunegate", "second")
    (comment,) = server.comments
    assert comment["body"] == f"{report_marker('.tunegate')}\nsecond"


def test_our_comment_is_found_behind_many_others(server: FakeGitHub) -> None:
    others = [{"id": n, "body": "x", "user": {"type": "User"}} for n in range(1, 251)]
    server.comments = [
        *others,
        {"id": 999, "body": report_marker("o") + "\nold", "user": {"type": "Bot"}},
    ]
    publish(server, "o", "new")
    assert server.comments[-1]["body"].endswith("new")
    assert len(server.comments) == 251


def test_a_marker_planted_by_a_person_is_not_ours(server: FakeGitHub) -> None:
    server.comments = [{"id": 1, "body": report_marker("o"), "user": {"type": "User"}}]
    publish(server, "o", "report")
    assert len(server.comments) == 2


def test_a_comment_stays_within_githubs_limit(server: FakeGitHub) -> None:
    publish(server, "o", "x" * 100_000)
    assert len(server.comments[0]["body"]) == MAX_COMMENT_CHARACTERS


@pytest.mark.parametrize("status", [403, 404, 422, 429, 500])
def test_a_refusal_says_the_status_and_no_secret(server: FakeGitHub, status: int) -> None:
    server.refuse_with = status
    with pytest.raises(HostRefusedError, match=f"GitHub answered {status}") as caught:
        publish(server, "o", "report")
    assert "ghs_secret" not in str(caught.value)


@pytest.mark.parametrize("answer", [None, 7, "x", {"message": "x"}, [None], [[]], [{"user": 7}]])
def test_an_answer_of_another_shape_is_a_refusal(server: FakeGitHub, answer: object) -> None:
    server.listed = answer
    with pytest.raises(HostRefusedError, match="no list of comments"):
        publish(server, "o", "report")


def test_a_server_that_is_not_there_is_a_refusal() -> None:
    with pytest.raises(HostRefusedError, match="could not be asked"):
        Comments("http://127.0.0.1:9", "a/b", 7, Secret("t")).publish("o", "report")
