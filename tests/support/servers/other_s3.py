"""Refusals of servers that speak S3, and are not Amazon's: faults for the proxy."""

import time
from email.utils import formatdate

from tests.support.servers.fault_proxy import Answer, Exchange, Fault
from tests.support.servers.faults import refusal


def no_conditions(exchange: Exchange) -> None:
    """A server that knows no conditional writes."""
    _refuse_with(exchange, "if-none-match", "if-match")


def refused_conditions(exchange: Exchange) -> None:
    """A server whose conditional writes never succeed."""
    _refuse_with(exchange, "if-none-match", "if-match", refused=(412, "PreconditionFailed"))


def no_checksums(exchange: Exchange) -> None:
    """A server that knows no checksum but that of the whole request."""
    _refuse_with(exchange, "x-amz-checksum-crc32", "x-amz-sdk-checksum-algorithm", "x-amz-trailer")


def no_signature_no_write(exchange: Exchange) -> None:
    """A bucket that everybody may read."""
    if exchange.request.verb in {"put", "delete"}:
        refusal(403, "AccessDenied")(exchange)
    else:
        exchange.send(exchange.forward())


def only_encrypted(algorithm: str) -> Fault:
    """A bucket whose policy denies each write that does not ask for this encryption."""

    def answer(exchange: Exchange) -> None:
        if _headers(exchange).get("x-amz-server-side-encryption") == algorithm:
            exchange.send(exchange.forward())
        else:
            refusal(403, "AccessDenied")(exchange)

    return answer


def skewed(minutes: int) -> Fault:
    """A server whose clock is behind ours."""

    def answer(exchange: Exchange) -> None:
        text = b"<Error><Code>RequestTimeTooSkewed</Code><Message>by the test</Message></Error>"
        date = formatdate(time.time() - 60 * minutes, usegmt=True)
        exchange.send(Answer(403, {"content-type": "application/xml", "date": date}, text))

    return answer


def _refuse_with(
    exchange: Exchange, *names: str, refused: tuple[int, str] = (501, "NotImplemented")
) -> None:
    if _headers(exchange).keys() & set(names):
        refusal(*refused)(exchange)
    else:
        exchange.send(exchange.forward())


def _headers(exchange: Exchange) -> dict[str, str]:
    return {name.lower(): value for name, value in exchange.request.headers.items()}
