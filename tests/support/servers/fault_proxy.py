"""A proxy in front of a real S3 server that spoils the exchanges it is told to spoil."""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

Verb = Literal["get", "put", "list", "head", "delete"]
_SPOKEN_BETWEEN_TWO = {"connection", "transfer-encoding", "keep-alive", "expect"}


class Request(msgspec.Struct, frozen=True):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def verb(self) -> Verb | None:
        if self.method == "GET":
            return "list" if "list-type=" in urlsplit(self.target).query else "get"
        kinds: dict[str, Verb] = {"PUT": "put", "HEAD": "head", "DELETE": "delete"}
        return kinds.get(self.method)

    @property
    def key(self) -> str:
        """The key of the request; that of a listing is the prefix."""
        parts = urlsplit(self.target)
        if self.verb == "list":
            return parse_qs(parts.query).get("prefix", [""])[0]
        return unquote(parts.path).lstrip("/").partition("/")[2]


class Answer(msgspec.Struct, frozen=True):
    """The names of `headers` are in small letters."""

    status: int
    headers: dict[str, str]
    body: bytes


class Exchange:
    """One request on its way. A fault forwards it or not, and answers what it likes."""

    def __init__(
        self, request: Request, handler: BaseHTTPRequestHandler, proxy: FaultProxy
    ) -> None:
        self.request, self._handler, self._proxy = request, handler, proxy

    def forward(self, **changes: object) -> Answer:
        """Returns the real server's answer to the request, or to a changed one."""
        return self._proxy.ask(msgspec.structs.replace(self.request, **changes))

    def send(self, answer: Answer, *, with_length: bool = True) -> None:
        headers = dict(answer.headers)
        if with_length and self.request.method != "HEAD":
            headers["content-length"] = str(len(answer.body))
        self.begin(answer.status, headers)
        if self.request.method != "HEAD":
            self.write(answer.body)

    def begin(self, status: int, headers: dict[str, str]) -> None:
        self._handler.send_response_only(status)
        for name, value in headers.items():
            self._handler.send_header(name, value)
        self._handler.end_headers()

    def write(self, piece: bytes) -> None:
        self._handler.wfile.write(piece)

    def hang_up(self) -> None:
        self._handler.close_connection = True

    def wait(self, seconds: float | None) -> bool:
        """Waits, and returns True where the proxy closes meanwhile."""
        return self._proxy.closing.wait(seconds)


Fault = Callable[[Exchange], None]


class Rule(msgspec.Struct):
    verb: Verb
    part_of_key: str
    fault: Fault
    times: float


class FaultProxy:
    """`met` counts the exchanges that were spoilt, by the part of the key they were told by."""

    def __init__(self, server_url: str) -> None:
        self._server = urlsplit(server_url).netloc
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self.met: Counter[str] = Counter()
        self.closing = threading.Event()

    def spoil(
        self, verb: Verb, part_of_key: str, fault: Fault, times: float = float("inf")
    ) -> None:
        """Every such request from now on, or only the first ones."""
        with self._lock:
            self._rules.append(Rule(verb, part_of_key, fault, times))

    def heal(self) -> None:
        with self._lock:
            self._rules.clear()

    def handle(self, exchange: Exchange) -> None:
        fault = self._fault(exchange.request)
        if fault is None:
            exchange.send(exchange.forward())
        else:
            fault(exchange)

    def ask(self, request: Request) -> Answer:
        connection = http.client.HTTPConnection(self._server, timeout=30)
        try:
            connection.request(request.method, request.target, request.body, request.headers)
            answer = connection.getresponse()
            headers = {
                name.lower(): value
                for name, value in answer.getheaders()
                if name.lower() not in _SPOKEN_BETWEEN_TWO
            }
            return Answer(answer.status, headers, answer.read())
        finally:
            connection.close()

    def _fault(self, request: Request) -> Fault | None:
        with self._lock:
            for rule in self._rules:
                if rule.verb == request.verb and rule.part_of_key in request.key and rule.times > 0:
                    rule.times -= 1
                    self.met[rule.part_of_key] += 1
                    return rule.fault
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        """A client that gives up in the middle is what the tests are about."""


def _handler(proxy: FaultProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def exchange(self) -> None:
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in {*_SPOKEN_BETWEEN_TWO, "content-length"}
            }
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.command, self.path, headers, body)
            with suppress(ConnectionError):
                proxy.handle(Exchange(request, self, proxy))

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = exchange

        def log_message(self, *_: object) -> None:
            """Drops the message, which would only be noise in the test's output."""

    return Handler


@contextmanager
def fault_proxy(server_url: str) -> Iterator[tuple[str, FaultProxy]]:
    """The proxy's URL, and the proxy, which forwards everything until it is told otherwise."""
    proxy = FaultProxy(server_url)
    with _Server(("127.0.0.1", 0), _handler(proxy)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", proxy
        finally:
            proxy.closing.set()
            server.shutdown()
            thread.join()
