"""Answers of an API over real HTTP: none of them is trusted."""

import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.ci.json_server import LoopbackServer, QuietHandler, serving
from tests.support.servers.own_authority import own_authority
from tunegate.ci import http as rest_api
from tunegate.ci.http import Patience, RestApi, RestRefusedError, is_limited, wait_seconds
from tunegate.ci.protocol import HostRefusedError

TOKEN = "secret-of-the-api"
Answer = Callable[["Handler"], None]


class Server(LoopbackServer):
    answer: Answer

    def __init__(self) -> None:
        super().__init__(Handler)
        self.asked: list[str] = []


class Handler(QuietHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(f"{self.path} {self.headers['Token']}")
        self.server.answer(self)

    do_POST = do_GET


def answering(status: int, body: bytes, **headers: str) -> Answer:
    return lambda to: to.answer(status, body, headers)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server()) as made:
        yield made


def ask(server: Server, *, limit_seconds: float = 30.0) -> object:
    headers = {"Token": TOKEN}
    return RestApi("Acme", server.url, headers, limit_seconds=limit_seconds).ask("GET", "/a?b=c")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (answering(403, TOKEN.encode()), "Acme answered 403 to GET /a"),
        (answering(200, b"<html>"), "Acme answered GET /a with no JSON"),
        (answering(200, b"[" * 100_000), "Acme answered GET /a with no JSON"),
        (lambda to: to.wfile.write(b"gibberish\r\n\r\n"), "could not be asked"),
        (lambda to: None, "could not be asked"),
    ],
    ids=["a refusal", "a page", "nested", "gibberish", "nothing"],
)
def test_any_other_answer_is_a_refusal_without_a_secret(
    server: Server, answer: Answer, said: str
) -> None:
    server.answer = answer
    with pytest.raises(HostRefusedError, match=said) as caught:
        ask(server)
    assert TOKEN not in str(caught.value)
    assert "b=c" not in str(caught.value)


def test_an_unknown_certificate_authority_is_named(tmp_path: Path) -> None:
    with (
        own_authority(tmp_path) as url,
        pytest.raises(HostRefusedError, match=r"not trusted: self.*set SSL_CERT_FILE"),
    ):
        RestApi("Acme", url, {}, limit_seconds=30.0).ask("GET", "/a")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_token_goes_to_no_other_address(server: Server, status: int) -> None:
    with Server() as other:
        server.answer = answering(status, b"", Location=f"{other.url}/elsewhere")
        with pytest.raises(HostRefusedError, match=f"answered {status}"):
            ask(server)
        assert not other.asked
    assert server.asked == [f"/a?b=c {TOKEN}"]


def test_an_endless_answer_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(to: Handler) -> None:
        to.send_response(200)
        to.end_headers()
        while True:
            to.wfile.write(b" ")
            time.sleep(0.01)

    server.answer = endless
    began = time.monotonic()
    with pytest.raises(HostRefusedError, match="did not answer GET /a in time"):
        ask(server, limit_seconds=0.3)
    assert time.monotonic() - began < 60  # the answer never ends
    monkeypatch.setattr(rest_api, "_MAX_BYTES", 10)
    with pytest.raises(HostRefusedError, match="with more than is read"):
        ask(server)


def test_all_answers_share_one_time(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = threading.Event()

    def stalled(_: Handler) -> None:
        is_over.wait()

    server.answer = answering(200, b"1")
    api = RestApi("Acme", server.url, {}, limit_seconds=30.0)
    assert api.ask("GET", "/") == 1
    server.answer = stalled
    later = time.monotonic() + 31
    monkeypatch.setattr(time, "monotonic", lambda: later)
    with pytest.raises(HostRefusedError, match="in time"):
        api.ask("GET", "/")
    is_over.set()


def test_an_api_that_hangs_is_tried_once_more_for_a_short_time_and_an_answer_ends_that(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over = threading.Event()

    def stalled(_: Handler) -> None:
        is_over.wait()

    monkeypatch.setattr(rest_api, "LAST_TRY_SECONDS", 20.0)
    patience = Patience()

    def ask_api(limit: float = 1.0) -> object:
        api = RestApi("Acme", server.url, {}, limit_seconds=limit, patience=patience)
        return api.ask("GET", "/")

    began = time.monotonic()
    server.answer = stalled
    with pytest.raises(HostRefusedError, match="in time"):
        ask_api()
    server.answer = answering(200, b"1")
    assert ask_api(30.0) == 1
    server.answer = stalled
    for why in ("in time", "in time", "did not answer twice", "did not answer twice"):
        with pytest.raises(HostRefusedError, match=why):
            ask_api()
    assert time.monotonic() - began < 60  # it hangs until the test ends
    assert patience.limit(60.0) == 0.0
    is_over.set()


@pytest.mark.parametrize("address", ["", "file:///etc/passwd", "ftp://127.0.0.1", "x"])
def test_only_http_is_spoken(address: str) -> None:
    with pytest.raises(HostRefusedError, match="no address"):
        RestApi("Acme", address, {})


@pytest.mark.parametrize("address", ["http://[", "http://\u2100.com", "ftp://x", ""])
def test_what_is_no_address_is_a_refusal(address: str) -> None:
    with pytest.raises(HostRefusedError, match="no address"):
        RestApi("CI", address, {})


def in_turn(*answers: Answer) -> Answer:
    """Each once, and the last one ever after."""
    left = list(answers)

    def answer(to: Handler) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(to)

    return answer


GONE: Answer = lambda to: None


@pytest.mark.parametrize(
    "refusal",
    [
        answering(429, b""),
        answering(429, b"", **{"Retry-After": "0"}),
        answering(403, b"", **{"Retry-After": "0"}),
        answering(403, b"", **{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}),
        answering(500, b""),
        answering(503, b"", **{"Retry-After": "0"}),
        GONE,
    ],
    ids=["429", "429 says when", "403 says when", "403 used up", "500", "503", "lost"],
)
def test_what_passes_is_asked_for_again(server: Server, refusal: Answer) -> None:
    server.answer = in_turn(refusal, refusal, answering(200, b"1"))
    assert ask(server) == 1
    assert len(server.asked) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_stays_refused_is_asked_for_once(server: Server, status: int) -> None:
    server.answer = answering(status, b"")
    with pytest.raises(RestRefusedError) as caught:
        ask(server)
    assert (caught.value.status, caught.value.may_be_done, len(server.asked)) == (status, False, 1)


def test_a_wait_beyond_the_time_that_is_left_is_not_begun(server: Server) -> None:
    server.answer = answering(429, b"", **{"Retry-After": "3600"})
    with pytest.raises(HostRefusedError, match="answered 429"):
        ask(server)  # the test's own limit ends a wait of an hour
    assert len(server.asked) == 1


@pytest.mark.parametrize("answer", [answering(500, b""), answering(200, b"<html>"), GONE])
def test_a_request_perhaps_done_is_not_repeated(server: Server, answer: Answer) -> None:
    server.answer = answer
    with pytest.raises(RestRefusedError) as caught:
        RestApi("Acme", server.url, {}).ask("POST", "/a")
    assert caught.value.may_be_done
    assert len(server.asked) == 1


def test_a_request_that_was_refused_for_its_time_is_made_again(server: Server) -> None:
    server.answer = in_turn(answering(429, b""), answering(201, b"{}"))
    assert RestApi("Acme", server.url, {}).ask("POST", "/a") == {}
    server.answer = in_turn(answering(500, b""), answering(200, b"{}"))
    assert RestApi("Acme", server.url, {}).ask("POST", "/a", is_repeatable=True) == {}


NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("status", "headers", "limited"),
    [
        (429, {}, True),
        (403, {}, False),
        (403, {"retry-after": "7"}, True),
        (403, {"x-ratelimit-remaining": "0"}, True),
        (403, {"x-ratelimit-remaining": "4999"}, False),
        (403, {"ratelimit-remaining": "0"}, True),
        (404, {"retry-after": "7"}, False),
        (200, {}, False),
    ],
)
def test_a_limit_is_no_refusal(status: int, headers: dict[str, str], limited: bool) -> None:
    assert is_limited(status, headers) is limited


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 2.0),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": formatdate(NOW + 9, usegmt=True)}, 9.0),
        ({"retry-after": formatdate(NOW - 9, usegmt=True)}, 0.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW) + 30)}, 31.0),
        ({"ratelimit-remaining": "0", "ratelimit-reset": str(int(NOW) + 30)}, 31.0),
        ({"x-ratelimit-remaining": "12", "x-ratelimit-reset": str(int(NOW) + 30)}, 2.0),
        ({"retry-after": "5", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}, 5.0),
        ({"retry-after": "soon"}, 2.0),
        ({"retry-after": "-1"}, 2.0),
        ({"retry-after": "9" * 400}, 2.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "nan"}, 2.0),
    ],
)
def test_the_wait_is_what_the_headers_say(headers: dict[str, str], seconds: float) -> None:
    assert wait_seconds(headers, 2.0, NOW) == seconds


def test_the_clock_of_the_server_counts() -> None:
    headers = {
        "date": formatdate(NOW + 1000, usegmt=True),
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": str(int(NOW) + 1020),
    }
    assert wait_seconds(headers, 2.0, NOW) == 21.0
