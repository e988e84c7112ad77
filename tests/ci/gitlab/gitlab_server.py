"""A server that answers as GitLab's API does, on loopback."""

import json
from contextlib import AbstractContextManager
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.ci.json_server import QuietHandler, serving

TOKEN = "glpat-adversary-0123456789"
ME, ANOTHER = {"id": 41, "username": "project_3_bot"}, {"id": 7, "username": "mallory"}
NOTES = "/api/v4/projects/3/merge_requests/7/notes"


class GitLabServer(ThreadingHTTPServer):
    """One merge request, whose notes may be written with one token."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.notes: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.answers: dict[str, tuple[int, object]] = {}
        """By method and path, what is answered instead."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/api/v4"

    def planted(self, body: str, author: dict[str, Any]) -> None:
        self.notes.append({"id": len(self.notes) + 100, "body": body, "author": author})


class _Handler(QuietHandler):
    server: GitLabServer

    def do_GET(self) -> None:
        if self._path == "/api/v4/user":
            return self._answer(200, ME)
        query = parse_qs(urlsplit(self.path).query)
        page, size = int(query["page"][0]), int(query["per_page"][0])
        return self._answer(200, self.server.notes[(page - 1) * size : page * size])

    def do_POST(self) -> None:
        self.server.planted(self._body(), ME)
        self._answer(201, self.server.notes[-1])

    def do_PUT(self) -> None:
        number = int(self._path.removeprefix(f"{NOTES}/"))
        note = next(each for each in self.server.notes if each["id"] == number)
        note["body"] = self._body()
        self._answer(200, note)

    @property
    def _path(self) -> str:
        return urlsplit(self.path).path

    def _body(self) -> str:
        return str(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])

    def _answer(self, status: int, content: object) -> None:
        asked = f"{self.command} {self._path}"
        self.server.requests.append(asked)
        if self.headers["PRIVATE-TOKEN"] != TOKEN:
            status, content = 401, {"message": "401 Unauthorized"}
        elif not self._path.startswith((NOTES, "/api/v4/user")):
            status, content = 404, {"message": "404 Not found"}
        status, content = self.server.answers.get(asked, (status, content))
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def gitlab_server() -> AbstractContextManager[GitLabServer]:
    return serving(GitLabServer())
