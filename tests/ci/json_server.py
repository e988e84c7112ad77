"""A server on loopback that answers JSON with JSON, for the API of a CI that a test plays."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

Answer = tuple[int, object]
_Server = TypeVar("_Server", bound=ThreadingHTTPServer)


class QuietHandler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- its own name
        """Says nothing."""


class JsonServer(ThreadingHTTPServer):
    """A server of one kind. `answered` is its usual answer; `answers` has those that a test wants
    instead, by method and path."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[str] = []
        self.answers: dict[str, Answer] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answered(
        self, asked: str, query: dict[str, str], body: dict[str, Any], token: str
    ) -> Answer:
        raise NotImplementedError


class _Handler(QuietHandler):
    server: JsonServer

    def _answer(self) -> None:
        address = urlsplit(self.path)
        asked = f"{self.command} {unquote(address.path)}"
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        length = int(self.headers["Content-Length"] or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        self.server.requests.append(asked)
        token = (self.headers["Authorization"] or "").removeprefix("Bearer ")
        found = self.server.answers.get(asked)
        status, content = found or self.server.answered(asked, query, body, token)
        said = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_PUT = do_PATCH = _answer


@contextmanager
def serving(server: _Server) -> Iterator[_Server]:
    with server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()
