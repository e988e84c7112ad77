"""A server on loopback that answers JSON with JSON, for the API of a CI that a test plays."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

Answer = tuple[int, object]
_Server = TypeVar("_Server", bound=ThreadingHTTPServer)


class QuietHandler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- its own name
        """Says nothing."""

    def answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class LoopbackServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class JsonServer(LoopbackServer):
    """A server of one kind. `answered` is its usual answer; a test has others in its place, by
    method and path."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.requests: list[str] = []
        self.answers: dict[str, Answer] = {}
        self.first: dict[str, list[tuple[int, dict[str, str], object]]] = {}
        """Answers that come before any other, with their headers; status 0 hangs up."""
        self.lost: dict[str, int] = {}
        """The status in the place of the next answer, which is lost after all is done."""

    def answered(
        self, asked: str, query: dict[str, str], body: dict[str, Any], token: str
    ) -> Answer:
        raise NotImplementedError


class _Handler(QuietHandler):
    server: JsonServer

    def _serve(self) -> None:
        address = urlsplit(self.path)
        asked = f"{self.command} {unquote(address.path)}"
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        length = int(self.headers["Content-Length"] or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        self.server.requests.append(asked)
        bearer = (self.headers["Authorization"] or "").removeprefix("Bearer ")
        token = self.headers["PRIVATE-TOKEN"] or bearer
        first = self.server.first.get(asked)
        if first:
            return self._tell(*first.pop(0))
        found = self.server.answers.get(asked)
        status, content = found or self.server.answered(asked, query, body, token)
        return self._tell(self.server.lost.pop(asked, status), {}, content)

    def _tell(self, status: int, headers: dict[str, str], content: object) -> None:
        if status:
            self.answer(status, json.dumps(content).encode(), headers)
        else:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve


@contextmanager
def serving(server: _Server) -> Iterator[_Server]:
    with server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()
