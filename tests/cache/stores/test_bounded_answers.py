"""Answers without an end, and answers that come a byte at a time."""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import count

import pytest

from tests.support.servers.fault_proxy import Exchange, Fault, Verb, fault_proxy
from tests.support.servers.faults import black_hole, endless_body, stalled_body
from tests.support.servers.listing_faults import pages_without_end
from tests.support.servers.moto_server import BUCKET
from tunegate_cache.stores import s3
from tunegate_cache.stores.bounded_answers import BoundedBody
from tunegate_cache.stores.s3 import S3Store
from tunegate_cache.stores.store import StoreTimedOutError, StoreUnavailableError

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
    assert [body.read(4), body.read(4), body.read(4), body.read(4)] == [
        b"0123",
        b"4567",
        b"89",
        b"",
    ]
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
    [("list", stalled_body), ("get", stalled_body), ("list", black_hole), ("put", black_hole)],
)
def test_a_server_that_stalls_is_told_from_other_trouble(
    endpoint: str, bucket: S3Store, monkeypatch: pytest.MonkeyPatch, verb: Verb, fault: Fault
) -> None:
    monkeypatch.setattr(s3, "_READ_SECONDS", 0.2)
    over(endpoint).write("a/1", b"0123456789")
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil(verb, "", fault)
        with pytest.raises(StoreTimedOutError, match=r"^s3://tuning: ReadTimeoutError$"):
            REQUESTS[verb](over(url))


@pytest.mark.parametrize("verb", REQUESTS)
def test_an_answer_without_end_is_given_up(endpoint: str, credentials: None, verb: Verb) -> None:
    """That one comes and is read in the SDK's own way: of an error, a write, a listing."""
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil(verb, "", endless_body)
        with pytest.raises(StoreUnavailableError, match=r"^s3://tuning: the answer is too large$"):
            REQUESTS[verb](over(url))


def test_an_error_without_end_is_given_up(endpoint: str, credentials: None) -> None:
    def endless_error(exchange: Exchange) -> None:
        exchange.begin(403, {"connection": "close"})
        while not exchange.wait(0):
            exchange.write(b" " * 65536)

    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("get", "", endless_error)
        with pytest.raises(StoreUnavailableError, match="the answer is too large"):
            over(url).read("a/1")


def test_a_listing_of_ever_more_pages_is_given_up(
    endpoint: str, bucket: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "_MAX_PAGES", 5)
    for number in range(2):
        over(endpoint).write(f"pages/{number}", b"x")
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("list", "", pages_without_end)
        with pytest.raises(StoreUnavailableError, match=r"^s3://tuning: a listing without end$"):
            over(url).names("pages/")
        assert proxy.met[""] == 6


def over(url: str) -> S3Store:
    return S3Store(BUCKET, "bounded", endpoint_url=url, region="us-east-1")
