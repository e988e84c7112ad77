"""The bucket store against a real server, and against servers in trouble."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.cache.stores.store_contract import MaintainedStoreContract
from tests.support.servers.fault_proxy import fault_proxy
from tests.support.servers.faults import captive_portal, swapped_bodies
from tests.support.servers.moto_server import BUCKET, NAMES_OF_A_PAGE, free_port
from tunegate_cache.stores.s3 import S3Store
from tunegate_cache.stores.store import AccessDeniedError, ObjectStore, StoreUnavailableError


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


def test_an_address_that_is_none_is_unavailable(credentials: None) -> None:
    with pytest.raises(StoreUnavailableError, match="s3://tuning"):
        over("not an address").names("a/")


def test_without_credentials_it_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(StoreUnavailableError, match=r"^s3://tuning: NoCredentialsError$"):
        over(f"http://127.0.0.1:{free_port()}").read("a/1")


def test_a_refusal_is_told_from_an_outage(credentials: None) -> None:
    answer = b"<Error><Code>AccessDenied</Code><Message>no testing</Message></Error>"
    with server_answering(403, answer) as url, pytest.raises(AccessDeniedError) as caught:
        over(url).write("a/1", b"x")
    assert str(caught.value) == "s3://tuning: AccessDenied"


def test_a_server_that_answers_nonsense_is_unavailable(credentials: None) -> None:
    nonsense = server_answering(200, b"<html>welcome to the hotel")
    with nonsense as url, pytest.raises(StoreUnavailableError):
        over(url).names("a/")


def test_a_server_in_trouble_is_unavailable(credentials: None) -> None:
    busy = server_answering(503, b"<Error><Code>SlowDown</Code></Error>")
    with busy as url, pytest.raises(StoreUnavailableError, match=r"^s3://tuning: SlowDown$"):
        over(url).read("a/1")


def test_a_listing_of_another_place_is_no_answer(endpoint: str, bucket: S3Store) -> None:
    """A gateway that mixes up two answers would bring a pull request's records to main."""
    over(endpoint).write("z/pr/7/1", b"x")
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("list", "z/main/", swapped_bodies)
        with pytest.raises(StoreUnavailableError, match="the listing of another place"):
            over(url).names("z/main/")


def test_a_greeting_is_neither_a_listing_nor_a_receipt(endpoint: str, bucket: S3Store) -> None:
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("list", "", captive_portal)
        proxy.spoil("put", "", captive_portal)
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
