"""Faults of servers, gateways and networks in the answers of an object store, by name."""

import gzip
import hashlib
import re
import secrets
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from tests.support.servers.fault_proxy import Answer, Exchange, Fault

_BLOCK = b"\0" * 65536


def refusal(status: int, code: str) -> Fault:
    """The server says no, and has done nothing."""

    def answer(exchange: Exchange) -> None:
        text = f"<Error><Code>{code}</Code><Message>by the test</Message></Error>"
        exchange.send(Answer(status, {"content-type": "application/xml"}, text.encode()))

    return answer


def black_hole(exchange: Exchange) -> None:
    exchange.wait(None)
    exchange.hang_up()


def reset(exchange: Exchange) -> None:
    exchange.hang_up()


def lost_answer(exchange: Exchange) -> None:
    """The server has done what it was asked, and nobody hears of it."""
    exchange.forward()
    exchange.hang_up()


def latency(exchange: Exchange) -> None:
    exchange.wait(0.005)
    exchange.send(exchange.forward())


def slow_body(exchange: Exchange) -> None:
    answer = exchange.forward()
    exchange.begin(answer.status, {**answer.headers, "content-length": str(len(answer.body))})
    for position in range(len(answer.body)):
        exchange.write(answer.body[position : position + 1])
        if exchange.wait(0.5):
            return


def slow_head(exchange: Exchange) -> None:
    """The head comes a byte at a time, each sooner than a client's time-out."""
    exchange.forward()
    exchange.write(b"HTTP/1.1 200 OK\r\nx: ")
    while not exchange.wait(0.05):
        exchange.write(b"x")


def truncated_body(exchange: Exchange) -> None:
    answer = exchange.forward()
    exchange.send(
        msgspec.structs.replace(answer, body=answer.body[: len(answer.body) // 2]),
        with_length=False,
    )
    exchange.hang_up()


def stalled_body(exchange: Exchange) -> None:
    answer = exchange.forward()
    exchange.begin(answer.status, {**answer.headers, "content-length": str(len(answer.body))})
    exchange.write(answer.body[: len(answer.body) // 2])
    black_hole(exchange)


def cut_short_by_a_gateway(exchange: Exchange) -> None:
    """Half of the body, and a length that says it is all."""
    answer = exchange.forward()
    exchange.send(msgspec.structs.replace(answer, body=answer.body[: len(answer.body) // 2]))


def bit_flip(exchange: Exchange) -> None:
    """Flips a bit in the body, whichever way it goes: a server checks the
    digest that the request names."""
    if exchange.request.verb == "put":
        body = _flipped(exchange.request.body)
        if hashlib.sha256(body).hexdigest() != exchange.request.headers["X-Amz-Content-SHA256"]:
            refusal(400, "XAmzContentSHA256Mismatch")(exchange)
            return
        exchange.send(exchange.forward(body=body))
        return
    answer = exchange.forward()
    exchange.send(msgspec.structs.replace(answer, body=_flipped(answer.body)))


def _flipped(body: bytes) -> bytes:
    middle = len(body) // 2
    return (
        body[:middle] + bytes([byte ^ 1 for byte in body[middle : middle + 1]]) + body[middle + 1 :]
    )


def swapped_bodies(exchange: Exchange) -> None:
    """Swaps the bodies of this object and another; a listing gets that of all there is."""
    parts = urlsplit(exchange.request.target)
    answer = exchange.forward()
    if exchange.request.verb == "list":
        query = urlencode({"list-type": "2", "prefix": ""})
        exchange.send(exchange.forward(target=f"{parts.path}?{query}"))
        return
    key = exchange.request.key
    bucket = parts.path.split("/")[1]
    query = urlencode({"list-type": "2", "prefix": key.rpartition("/")[0]})
    listing = _ask(exchange, f"/{bucket}?{query}").body.decode()
    other = next((k for k in re.findall(r"<Key>(.*?)</Key>", listing) if k != key), key)
    swapped = _ask(exchange, f"/{bucket}/{quote(other)}").body
    exchange.send(msgspec.structs.replace(answer, body=swapped))


def _ask(exchange: Exchange, target: str) -> Answer:
    return exchange.forward(method="GET", target=target, headers={}, body=b"")


def wrong_etag(exchange: Exchange) -> None:
    answer = exchange.forward()
    headers = {**answer.headers, "etag": f'"{"0" * 32}"'}
    exchange.send(msgspec.structs.replace(answer, headers=headers))


def gzip_mangled(exchange: Exchange) -> None:
    """A gateway that packs what was not asked for packed."""
    answer = exchange.forward()
    headers = {**answer.headers, "content-encoding": "gzip"}
    exchange.send(Answer(answer.status, headers, gzip.compress(answer.body)))


def empty_body(exchange: Exchange) -> None:
    exchange.send(msgspec.structs.replace(exchange.forward(), body=b""))


def captive_portal(exchange: Exchange) -> None:
    """Whoever asks anything is welcome, and nothing reaches the server."""
    exchange.send(Answer(200, {"content-type": "text/html"}, b"<html>welcome</html>"))


def no_length(exchange: Exchange) -> None:
    answer = exchange.forward()
    headers = {n: v for n, v in answer.headers.items() if n != "content-length"}
    headers["connection"] = "close"
    exchange.send(msgspec.structs.replace(answer, headers=headers), with_length=False)
    exchange.hang_up()


def endless_body(exchange: Exchange) -> None:
    exchange.begin(200, {"connection": "close"})
    exchange.hang_up()
    while not exchange.wait(0):
        exchange.write(_BLOCK)


def garbage(exchange: Exchange) -> None:
    exchange.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
    exchange.hang_up()


FAULTS: dict[str, Fault] = {
    "reset": reset,
    "black hole": black_hole,
    "slow body": slow_body,
    "stalled body": stalled_body,
    "301": refusal(301, "PermanentRedirect"),
    "400": refusal(400, "InvalidRequest"),
    "400 expired": refusal(400, "ExpiredToken"),
    "403": refusal(403, "AccessDenied"),
    "404 bucket": refusal(404, "NoSuchBucket"),
    "404 key": refusal(404, "NoSuchKey"),
    "409": refusal(409, "ConditionalRequestConflict"),
    "412": refusal(412, "PreconditionFailed"),
    "416": refusal(416, "InvalidRange"),
    "429": refusal(429, "TooManyRequests"),
    "500": refusal(500, "InternalError"),
    "501": refusal(501, "NotImplemented"),
    "503": refusal(503, "SlowDown"),
    "truncated body": truncated_body,
    "cut short": cut_short_by_a_gateway,
    "bit flip": bit_flip,
    "swapped bodies": swapped_bodies,
    "wrong etag": wrong_etag,
    "gzip": gzip_mangled,
    "empty body": empty_body,
    "latency": latency,
    "lost answer": lost_answer,
    "no length": no_length,
    "endless body": endless_body,
    "garbage": garbage,
    "captive portal": captive_portal,
}
"""Faults that can befall any request."""


# What befalls listings only, by name.

_CONTENTS = re.compile(rb"<Contents>.*?</Contents>", re.DOTALL)


def empty_listing(exchange: Exchange) -> None:
    _send_listing(exchange, _CONTENTS.sub(b"", exchange.forward().body))


def unsorted_listing(exchange: Exchange) -> None:
    listing = exchange.forward().body
    entries = iter(reversed(_CONTENTS.findall(listing)))
    _send_listing(exchange, _CONTENTS.sub(lambda _: next(entries), listing))


def repeated_page(exchange: Exchange) -> None:
    """The first page is sent twice; then the listing goes on."""
    target, again = exchange.request.target, "continuation-token=again-"
    if again in target:
        exchange.send(_page(exchange, target.replace(again, "continuation-token=")))
    elif "continuation-token=" in target:
        first = re.sub(r"&?continuation-token=[^&]*", "", target)
        _send_listing(exchange, _with_token(_page(exchange, first).body, b"again-"))
    else:
        exchange.send(_page(exchange, target))


def same_page_for_ever(exchange: Exchange) -> None:
    first = re.sub(r"&?continuation-token=[^&]*", "", exchange.request.target)
    _send_listing(exchange, _page(exchange, first).body)


def pages_without_end(exchange: Exchange) -> None:
    """Answers with pages as above, but each page seems to lead to another."""
    first = re.sub(r"&?continuation-token=[^&]*", "", exchange.request.target)
    page = _with_token(_page(exchange, first).body, secrets.token_hex(8).encode())
    _send_listing(exchange, page)


def _page(exchange: Exchange, target: str) -> Answer:
    """A listing of one name."""
    return exchange.forward(target=f"{target}&max-keys=1")


def _with_token(page: bytes, mark: bytes) -> bytes:
    opening = b"<NextContinuationToken>"
    return page.replace(opening, opening + mark)


def _send_listing(exchange: Exchange, listing: bytes) -> None:
    exchange.send(Answer(200, {"content-type": "application/xml"}, listing))


LISTING_FAULTS: dict[str, Fault] = {
    "empty listing": empty_listing,
    "unsorted listing": unsorted_listing,
    "repeated page": repeated_page,
    "same page for ever": same_page_for_ever,
    "pages without end": pages_without_end,
}
