"""A server that answers as GitHub's API does, on loopback."""

import json
from contextlib import AbstractContextManager
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.ci.json_server import QuietHandler, serving

JOBS_OWN = "github-actions[bot]"
Answer = tuple[int, dict[str, str], object]


class GitHubServer(ThreadingHTTPServer):
    """One repository with the comments of its pull request 7, 100 a page. `login` is whose token
    it is asked with; an app's may not ask for its user."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.login = JOBS_OWN
        self.user_id: int | None = None
        self.comments: list[dict[str, Any]] = []
        self._last = 99
        self.checks: list[dict[str, Any]] = []
        self.pulls: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.tokens: set[str] = set()
        self.first: dict[str, list[Answer]] = {}
        """By method and path, what is answered before anything else; status 0 hangs up."""
        self.always: dict[str, tuple[int, object]] = {}
        """By method and path, what is answered instead."""
        self.loses_answers = False
        """True where the next comment is written and its answer is lost."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables by which a job finds this server."""
        return {
            "GITHUB_API_URL": self.url,
            "GITHUB_GRAPHQL_URL": f"{self.url}/graphql",
            "GITHUB_REPOSITORY": "acme/models",
        }

    def planted(self, body: str, login: str = JOBS_OWN, user_id: int | None = None) -> None:
        self._last += 1
        user: dict[str, Any] = {"login": login}
        user |= {} if user_id is None else {"id": user_id}
        self.comments.append({"id": self._last, "body": body, "user": user})

    def made(self, method: str) -> list[str]:
        return [each for each in self.requests if each.startswith(f"{method} ")]


class _Handler(QuietHandler):
    server: GitHubServer

    def do_GET(self) -> None:
        self._serve(None)

    def do_POST(self) -> None:
        self._serve(self._body())

    do_PATCH = do_POST

    def do_DELETE(self) -> None:
        self._serve(None)

    def _serve(self, body: Any) -> None:  # noqa: ANN401 -- JSON
        path = urlsplit(self.path).path
        asked = f"{self.command} {path}"
        self.server.requests.append(asked)
        self.server.tokens.add(str(self.headers["Authorization"]))
        planned = self.server.first.get(asked, [])
        if planned:
            self._answer(*planned.pop(0))
        elif asked in self.server.always:
            status, content = self.server.always[asked]
            self._answer(status, {}, content)
        else:
            status, content = self._found(path, body)
            self._answer(0 if self._is_lost(asked) else status, {}, content)

    def _is_lost(self, asked: str) -> bool:
        lost = self.server.loses_answers and asked.startswith("POST /repos/")
        self.server.loses_answers = self.server.loses_answers and not lost
        return lost

    def _found(self, path: str, body: Any) -> tuple[int, object]:  # noqa: ANN401 -- JSON
        server = self.server
        is_app = server.login.endswith("[bot]")
        plain: dict[str, tuple[int, object]] = {
            "/graphql": (200, {"data": {"viewer": {"login": server.login}}}),
            "/user": (403, {}) if is_app else (200, {"login": server.login}),
        }
        if path in plain:
            return plain[path]
        if path.endswith("/pulls"):
            return 200, server.pulls
        return self._checks(path, body) if "/check-runs" in path else self._comments(path, body)

    def _checks(self, path: str, body: Any) -> tuple[int, object]:  # noqa: ANN401 -- JSON
        if not path.endswith("/check-runs"):
            return self._rewritten(self.server.checks, path, body)
        self.server.checks.append({"id": len(self.server.checks) + 1, **body})
        return 201, self.server.checks[-1]

    def _comments(self, path: str, body: Any) -> tuple[int, object]:  # noqa: ANN401 -- JSON
        if not path.endswith("/issues/7/comments"):
            return self._rewritten(self.server.comments, path, body)
        if body is not None:
            self.server.planted(body["body"], self.server.login, self.server.user_id)
            return 201, self.server.comments[-1]
        query = parse_qs(urlsplit(self.path).query)
        page, size = int(query["page"][0]), int(query["per_page"][0])
        return 200, self.server.comments[(page - 1) * size : page * size]

    def _rewritten(self, known: list[dict[str, Any]], path: str, body: Any) -> tuple[int, object]:  # noqa: ANN401 -- JSON
        identity = path.rsplit("/", 1)[1]
        found = [each for each in known if str(each["id"]) == identity]
        if self.command == "DELETE":
            known[:] = [each for each in known if each not in found]
            return (204, None) if found else (404, {})
        for each in found:
            each.update(body)
        return (200, found[0]) if found else (404, {})

    def _body(self) -> Any:  # noqa: ANN401 -- JSON
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, status: int, headers: dict[str, str], content: object) -> None:
        if not status:
            self.close_connection = True
            return
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def github_server() -> AbstractContextManager[GitHubServer]:
    return serving(GitHubServer())
