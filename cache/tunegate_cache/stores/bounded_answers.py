"""Limits the answers of a bucket: the SDK would read a broken server's answer for ever."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from tunegate_cache.stores.store import StoreTimedOutError, StoreUnavailableError

_PIECE_BYTES = 64 * 1024
_Client = Any
"""A boto3 client; the library ships no types."""


class Body(Protocol):
    """A body of the HTTP library below the SDK."""

    def read1(self, amount: int) -> bytes: ...
    def close(self) -> None: ...


class BoundedBody:
    """The body of one answer, within the limits. The SDK's time-outs are per piece, and a server
    may send a byte at a time; this limit covers the whole."""

    def __init__(
        self, raw: Body, *, most_bytes: int, seconds: float, monotonic: Callable[[], float]
    ) -> None:
        self._raw, self._left, self._monotonic = raw, most_bytes, monotonic
        self._deadline = monotonic() + seconds

    def read(self, amount: int | None = None) -> bytes:
        """Returns the rest, or at most `amount` bytes and at least one until the end. Raises
        StoreUnavailableError if it is too long, StoreTimedOutError if it takes too long."""
        return b"".join(self.stream()) if amount is None else self._piece(amount)

    def stream(self, amount: int = _PIECE_BYTES) -> Iterator[bytes]:
        while piece := self._piece(amount):
            yield piece

    def __getattr__(self, name: str) -> object:
        """Passes on anything else the SDK asks, such as whether it is closed."""
        return getattr(self._raw, name)

    def _piece(self, amount: int) -> bytes:
        if self._monotonic() > self._deadline:
            self._raw.close()
            message = "the answer takes too long"
            raise StoreTimedOutError(message)
        piece = self._raw.read1(amount)
        self._left -= len(piece)
        if self._left < 0:
            self._raw.close()
            message = "the answer is too large"
            raise StoreUnavailableError(message)
        return piece


class _Request(Protocol):
    stream_output: bool
    url: str


class _Answer(Protocol):
    raw: Any
    status_code: int

    @property
    def content(self) -> bytes: ...


class _Session(Protocol):
    def send(self, request: _Request) -> _Answer: ...


class _BoundedSession:
    """Wraps the SDK's own HTTP session, and reads with limits what that would read to the end."""

    def __init__(self, session: _Session, *, most_bytes: int, seconds: float) -> None:
        self._session, self._most_bytes, self._seconds = session, most_bytes, seconds

    def send(self, request: _Request) -> _Answer:
        from botocore.exceptions import ConnectionClosedError, ReadTimeoutError  # noqa: PLC0415
        from botocore.response import URLLib3ProtocolError, URLLib3ReadTimeoutError  # noqa: PLC0415

        wants_stream, request.stream_output = request.stream_output, True
        answer = self._session.send(request)
        answer.raw = BoundedBody(
            answer.raw,
            most_bytes=self._most_bytes,
            seconds=self._seconds,
            monotonic=time.monotonic,
        )
        if not wants_stream or answer.status_code >= 300:  # noqa: PLR2004 - not a success
            try:
                _ = answer.content
            except URLLib3ReadTimeoutError as error:  # as the SDK's own session does it
                raise ReadTimeoutError(endpoint_url=request.url, error=error) from error
            except URLLib3ProtocolError as error:
                raise ConnectionClosedError(endpoint_url=request.url, error=error) from error
        return answer

    def __getattr__(self, name: str) -> object:
        """Passes on whatever else the SDK asks of its session."""
        return getattr(self._session, name)


def bound_answers(client: _Client, *, most_bytes: int, seconds: float) -> None:
    """Limits every later answer to `client` to this size and time."""
    endpoint = client._endpoint  # the SDK has no other door to what it reads
    endpoint.http_session = _BoundedSession(
        endpoint.http_session, most_bytes=most_bytes, seconds=seconds
    )
