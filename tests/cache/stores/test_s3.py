"""The bucket store against a real server, and against servers in trouble."""

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from pathlib import Path

import boto3
import msgspec
import pytest

from tests.cache.stores.store_contract import MaintainedStoreContract
from tests.support.servers import faults, other_s3
from tests.support.servers.fault_proxy import Answer, Exchange, Fault, FaultProxy, Verb, fault_proxy
from tests.support.servers.moto_server import BUCKET, NAMES_OF_A_PAGE, free_port
from tests.support.servers.own_authority import own_authority
from tunegate_cache.stores import s3
from tunegate_cache.stores.conformance import probe
from tunegate_cache.stores.s3 import S3Store
from tunegate_cache.stores.s3_client import BoundedBody
from tunegate_cache.stores.store import (
    AccessDeniedError,
    ObjectConflictError,
    ObjectStore,
    PointerMovedError,
    StoreTimedOutError,
    StoreUnavailableError,
    UnsupportedRequestError,
)


class TestS3Store(MaintainedStoreContract):
    @pytest.fixture
    def store(self, bucket: S3Store) -> ObjectStore:
        return bucket

    def test_more_names_than_a_page_holds_are_all_listed(self, store: ObjectStore) -> None:
        wanted = [f"many/{number:04d}" for number in range(2 * NAMES_OF_A_PAGE + 1)]
        for name in wanted:
            store.write(name, b"")
        assert list(store.names("many/")) == wanted


def test_a_missing_bucket_is_unavailable_and_says_so(endpoint: str, credentials: None) -> None:
    store = S3Store("absent", "", endpoint_url=endpoint, region="us-east-1")
    with pytest.raises(StoreUnavailableError, match=r"^s3://absent: NoSuchBucket$"):
        store.write("a/1", b"x")


def test_a_server_that_is_not_there_is_unavailable(credentials: None) -> None:
    with pytest.raises(StoreUnavailableError, match=r"^s3://tuning: EndpointConnectionError$"):
        over(f"http://127.0.0.1:{free_port()}").read("a/1")
    with pytest.raises(StoreUnavailableError, match="s3://tuning"):
        over("not an address").names("a/")


def test_a_refusal_is_told_from_an_outage(credentials: None) -> None:
    answer = b"<Error><Code>AccessDenied</Code><Message>no testing</Message></Error>"
    with server_answering(403, answer) as url, pytest.raises(AccessDeniedError) as caught:
        over(url).write("a/1", b"x")
    assert str(caught.value) == "s3://tuning: AccessDenied"


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (503, b"<Error><Code>SlowDown</Code></Error>", "SlowDown"),
        # A text that is no code could be a token of the request, or a line for the CI.
        (400, b"<Error><Code>wJalrXUtn/EXAMPLE\n::error::x</Code></Error>", "400"),
        (200, b"<html>welcome to the hotel", ""),
    ],
)
def test_trouble_is_told_by_its_code_or_status(
    credentials: None, status: int, answer: bytes, said: str
) -> None:
    with server_answering(status, answer) as url, pytest.raises(StoreUnavailableError) as caught:
        over(url).names("a/")
    assert str(caught.value).startswith(f"s3://tuning: {said}")


@pytest.mark.parametrize("status", [302, 307])
def test_a_redirecting_server_is_asked_once(endpoint: str, credentials: None, status: int) -> None:
    """A login page before the bucket answers so, to every request."""
    with fault_proxy(endpoint) as (url, proxy):
        elsewhere = Answer(status, {"location": f"{url}/login"}, b"")
        proxy.spoil("list", "", lambda exchange: exchange.send(elsewhere))
        with pytest.raises(StoreUnavailableError, match=rf"answers with a redirect \({status}\)$"):
            over(url).names("a/")
        assert proxy.met[""] == 1


def test_a_listing_of_another_place_is_no_answer(endpoint: str, bucket: S3Store) -> None:
    """A gateway that mixes up two answers would bring a pull request's records to main."""
    over(endpoint).write("z/pr/7/1", b"x")
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("list", "z/main/", faults.swapped_bodies)
        with pytest.raises(StoreUnavailableError, match="the listing of another place"):
            over(url).names("z/main/")


def test_a_greeting_is_neither_a_listing_nor_a_receipt(endpoint: str, bucket: S3Store) -> None:
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("list", "", faults.captive_portal)
        proxy.spoil("put", "", faults.captive_portal)
        with pytest.raises(StoreUnavailableError, match="no listing"):
            over(url).names("z/main/")
        with pytest.raises(StoreUnavailableError, match="without ETag"):
            over(url).write("z/main/1", b"x")


def over(url: str) -> S3Store:
    return S3Store(BUCKET, "team/x", endpoint_url=url, region="us-east-1")


@contextmanager
def server_answering(status: int, body: bytes) -> Iterator[str]:
    """A server that gives one answer to everything."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = answer

        def log_message(self, *_: object) -> None:
            """Drops the message, which would only be noise in the test's output."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


# Answers without an end, and answers that come a byte at a time.

REQUESTS: dict[Verb, Callable[[S3Store], object]] = {
    "get": lambda store: store.read("a/1"),
    "put": lambda store: store.write("a/1", b"x"),
    "list": lambda store: store.names("a/"),
}


def bounded(text: bytes, *, most_bytes: int = 100, seconds: float = 10.0) -> BoundedBody:
    """A second passes with every look at the clock."""
    clock = count()
    return BoundedBody(
        io.BytesIO(text), most_bytes=most_bytes, seconds=seconds, monotonic=lambda: next(clock)
    )


def test_what_keeps_to_the_limits_is_read_whole_or_in_pieces() -> None:
    assert bounded(b"0123456789").read() == b"0123456789"
    body = bounded(b"0123456789", most_bytes=10)
    expected = [b"0123", b"4567", b"89", b""]
    assert [body.read(4), body.read(4), body.read(4), body.read(4)] == expected
    assert list(bounded(b"0123456789").stream(6)) == [b"012345", b"6789"]


def test_a_byte_too_many_is_too_large() -> None:
    raw = io.BytesIO(b"0123456789")
    body = BoundedBody(raw, most_bytes=9, seconds=10, monotonic=lambda: 0.0)
    with pytest.raises(StoreUnavailableError, match="too large"):
        body.read()
    assert raw.closed


def test_a_body_that_takes_too_long_is_given_up() -> None:
    body = bounded(b"0123456789", seconds=3)
    with pytest.raises(StoreTimedOutError, match="too long"):
        list(body.stream(1))


@pytest.mark.parametrize(
    ("verb", "fault"),
    [
        ("list", faults.stalled_body),
        ("get", faults.stalled_body),
        ("list", faults.black_hole),
        ("put", faults.black_hole),
        *((verb, faults.slow_head) for verb in REQUESTS),
    ],
)
def test_a_server_that_stalls_is_told_from_other_trouble(
    endpoint: str, bucket: S3Store, monkeypatch: pytest.MonkeyPatch, verb: Verb, fault: Fault
) -> None:
    bounded_answers_over(endpoint).write("a/1", b"0123456789")
    said = "ReadTimeoutError"
    if fault is faults.slow_head:
        monkeypatch.setattr(s3, "_REQUEST_SECONDS", 0.5)
        said = "the answer takes too long"
    else:
        limits = msgspec.structs.replace(s3._LIMITS, read_seconds=0.2)
        monkeypatch.setattr(s3, "_LIMITS", limits)
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil(verb, "", fault)
        with pytest.raises(StoreTimedOutError, match=f"^s3://tuning: {said}$"):
            REQUESTS[verb](bounded_answers_over(url))


def test_credentials_that_never_come_are_given_up(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program that gives them may wait for somebody at a keyboard."""
    (tmp_path / "config").write_text("[default]\ncredential_process = sleep 9\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setattr(s3, "_REQUEST_SECONDS", 0.5)
    with pytest.raises(StoreTimedOutError, match=r"^s3://tuning: the answer takes too long$"):
        bounded_answers_over(endpoint).read("a/1")


@pytest.mark.parametrize("verb", REQUESTS)
def test_an_answer_without_end_is_given_up(endpoint: str, credentials: None, verb: Verb) -> None:
    """The SDK reads each such answer in its own way: of an error, a write, a listing."""
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil(verb, "", faults.endless_body)
        with pytest.raises(StoreUnavailableError, match=r"^s3://tuning: the answer is too large$"):
            REQUESTS[verb](bounded_answers_over(url))


def test_an_error_without_end_is_given_up(endpoint: str, credentials: None) -> None:
    def endless_error(exchange: Exchange) -> None:
        exchange.begin(403, {"connection": "close"})
        while not exchange.wait(0):
            exchange.write(b" " * 65536)

    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("get", "", endless_error)
        with pytest.raises(StoreUnavailableError, match="the answer is too large"):
            bounded_answers_over(url).read("a/1")


def test_a_listing_of_ever_more_pages_is_given_up(
    endpoint: str, bucket: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "_MAX_PAGES", 5)
    for number in range(2):
        bounded_answers_over(endpoint).write(f"pages/{number}", b"x")
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("list", "", faults.pages_without_end)
        with pytest.raises(StoreUnavailableError, match=r"^s3://tuning: a listing without end$"):
            bounded_answers_over(url).names("pages/")
        assert proxy.met[""] == 6


def bounded_answers_over(url: str) -> S3Store:
    return S3Store(BUCKET, "bounded", endpoint_url=url, region="us-east-1")


# The bucket store against servers that answer as those of others do.


def test_a_public_bucket_is_read_without_credentials(
    endpoint: str, bucket: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_over(endpoint).write("private/1", b"x")
    client = boto3.session.Session().client("s3", endpoint_url=endpoint, region_name="us-east-1")
    client.put_object(Bucket=BUCKET, Key="team/y/public/1", Body=b"x", ACL="public-read")
    _forget_credentials(monkeypatch)
    with fault_proxy(endpoint) as (url, proxy):
        signed = _headers_of(proxy)
        proxy.spoil("put", "", other_s3.no_signature_no_write)
        store = other_over(url)
        assert store.read("public/1") == b"x"
        assert store.names("public/") == ["public/1"]
        assert not any("authorization" in headers for headers in signed)
        with pytest.raises(AccessDeniedError, match="403, asked without credentials"):
            store.read("private/1")
        with pytest.raises(AccessDeniedError) as caught:
            store.write("public/2", b"x")
    assert str(caught.value) == (
        "s3://tuning: AccessDenied, asked without credentials: none were found"
    )
    assert "aws sso login" in caught.value.advice[0]


@pytest.mark.parametrize("fault", [other_s3.no_conditions, other_s3.refused_conditions])
def test_a_server_without_conditions_is_written_and_says_so(
    endpoint: str, bucket: S3Store, fault: Fault
) -> None:
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("put", "", fault)
        store, place = other_over(url), fault.__name__
        store.write(f"{place}/1", b"x")
        store.write(f"{place}/1", b"x")
        with pytest.raises(ObjectConflictError):
            store.write(f"{place}/1", b"y")
        assert store.read(f"{place}/1") == b"x"
        store.move_pointer(f"{place}/HEAD", b"1", None)
        with pytest.raises(PointerMovedError):
            store.move_pointer(f"{place}/HEAD", b"2", None)
        tag = store.read_pointer(f"{place}/HEAD").tag
        other_over(url).move_pointer(f"{place}/HEAD", b"2", tag)
        with pytest.raises(PointerMovedError):
            store.move_pointer(f"{place}/HEAD", b"3", tag)
        (remark,) = store.remarks
        (told,) = (each.detail for each in probe(other_over(url)) if each.detail == remark)
    assert "does not implement If-None-Match" in told


@pytest.mark.parametrize(
    ("fault", "said"), [("409", "is being written"), ("412", "refused as if it were there")]
)
def test_a_refused_write_of_what_is_not_there_says_which_refusal(
    endpoint: str, bucket: S3Store, fault: str, said: str
) -> None:
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("put", "", faults.FAULTS[fault])
        with pytest.raises(StoreUnavailableError, match=said):
            other_over(url).write("refused/1", b"x")


def test_only_the_first_request_waits_for_a_connection(
    endpoint: str, bucket: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, begun = other_over(endpoint), []
    start = threading.Thread.start

    def begin(thread: threading.Thread) -> None:
        begun.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", begin)
    for threads in (2, 3):
        store.write(f"once/{threads}", b"x")
        assert len(begun) == threads


def test_the_users_own_checksums_win_and_other_addresses_get_none(
    endpoint: str, bucket: S3Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("put", "", other_s3.no_checksums)
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
        S3Store(BUCKET, "sums", endpoint_url=None, region="us-east-1").write("a/1", b"x")
        assert proxy.met[""] == 1
        monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_supported")
        with pytest.raises(UnsupportedRequestError) as caught:
            other_over(url).write("a/2", b"x")
        assert "AWS_REQUEST_CHECKSUM_CALCULATION=when_required" in caught.value.advice[0]
        monkeypatch.delenv("AWS_REQUEST_CHECKSUM_CALCULATION")
        profile = tmp_path / "config"
        profile.write_text("[default]\nrequest_checksum_calculation = when_supported\n")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(profile))
        with pytest.raises(UnsupportedRequestError):
            other_over(url).write("a/3", b"x")


def test_a_bucket_that_wants_encryption_is_written_with_it(endpoint: str, bucket: S3Store) -> None:
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("put", "", other_s3.only_encrypted("aws:kms"))
        with pytest.raises(AccessDeniedError):
            other_over(url).write("sse/1", b"x")
        S3Store(
            BUCKET, "sse", endpoint_url=url, region="us-east-1", sse="aws:kms", sse_kms_key="key"
        ).write("1", b"x")


def test_a_clock_that_is_off_is_told_as_one(endpoint: str, credentials: None) -> None:
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("get", "", other_s3.skewed(62))
        with pytest.raises(StoreUnavailableError) as caught:
            other_over(url).read("a/1")
    assert str(caught.value) == (
        "s3://tuning: RequestTimeTooSkewed, the clock of this machine is 62 minutes ahead of the "
        "server's"
    )
    assert caught.value.advice[0].startswith("set the clock")


def test_an_unknown_certificate_authority_is_named(tmp_path: Path, credentials: None) -> None:
    with own_authority(tmp_path) as url, pytest.raises(StoreUnavailableError) as caught:
        other_over(url).read("a/1")
    assert str(caught.value).startswith(
        "s3://tuning: the server's certificate is not trusted (self"
    )
    assert "AWS_CA_BUNDLE" in caught.value.advice[0]


def other_over(url: str) -> S3Store:
    return S3Store(BUCKET, "team/y", endpoint_url=url, region="us-east-1")


def _forget_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


def _headers_of(proxy: FaultProxy) -> list[set[str]]:
    """Collects the names of the headers of each request that reads."""
    seen: list[set[str]] = []

    def note(exchange: Exchange) -> None:
        seen.append({name.lower() for name in exchange.request.headers})
        exchange.send(exchange.forward())

    proxy.spoil("get", "", note)
    proxy.spoil("list", "", note)
    return seen
