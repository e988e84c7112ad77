"""A web server on loopback that answers each path as a test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler], None]


class Asked:
    """The requests so far, as `METHOD path`, and the headers of the last one."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.headers: Mapping[str, str] = {}


@contextmanager
def scripted_web(answers: Mapping[str, Answer | bytes]) -> Iterator[tuple[str, Asked]]:
    """The address, and what was asked. `answers` is looked up at every request, without its query;
    bytes are a whole answer, and what is not there is 404."""
    asked = Asked()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def __getattr__(self, name: str) -> Callable[[], None]:
            if name.startswith("do_"):
                return self._answer
            raise AttributeError(name)

        def _answer(self) -> None:
            asked.lines.append(f"{self.command} {self.path}")
            asked.headers = dict(self.headers.items())
            answer = answers.get(self.path.partition("?")[0])
            if callable(answer):
                answer(self)
            else:
                send(self, 404 if answer is None else 200, answer or b"")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- its name there
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def send(
    request: BaseHTTPRequestHandler,
    status: int,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> None:
    """Sends a whole answer; `headers` may say another Content-Length than the body has."""
    request.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
        request.send_header(name, value)
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(body)


def redirect_to(address: str) -> Answer:
    return lambda request: send(request, 302, headers={"Location": address})
