"""A client of S3: its credentials, the checksums it sends, and its time limits.

boto3 takes half a second to import, so only processes that use a bucket import it.
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tunegate_cache.stores.store import StoreTimedOutError, StoreUnavailableError

_Foreign = Any
"""A boto3 client, or an object of its; the library ships no types."""

_AMAZON = (".amazonaws.com", ".amazonaws.com.cn")
_REDIRECTS, _REGION = (301, 302, 307, 308), "x-amz-bucket-region"
_CHECKSUM_SETTINGS = ("request_checksum_calculation", "response_checksum_validation")


class ClientLimits(msgspec.Struct, frozen=True, kw_only=True):
    """`most_bytes` and `answer_seconds` bound each whole answer; None bounds none."""

    connect_seconds: float
    read_seconds: float
    attempts: int
    most_bytes: int | None = None
    answer_seconds: float | None = None


def make_client(*, endpoint_url: str | None, region: str | None, limits: ClientLimits) -> _Foreign:
    """Returns a client with the credentials of the SDK's usual chain. Without any, its requests are
    not signed: a bucket may let everybody read. The search may use the network."""
    import boto3  # noqa: PLC0415
    from botocore import UNSIGNED  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    session = boto3.session.Session()
    config = Config(
        connect_timeout=limits.connect_seconds,
        read_timeout=limits.read_seconds,
        retries={"mode": "standard", "total_max_attempts": limits.attempts},
        max_pool_connections=32,
        tcp_keepalive=True,
    )
    if session.get_credentials() is None:
        config = config.merge(Config(signature_version=UNSIGNED))

    def client_with(config: Config) -> _Foreign:
        return session.client("s3", endpoint_url=endpoint_url, region_name=region, config=config)

    client = client_with(config)
    # The address may come from a variable or a profile, too, so the client is asked for it.
    if not is_amazon(str(client.meta.endpoint_url)):
        # Other servers refuse or ignore the newer checksums; names carry sha-256 anyway.
        own = _users_settings(session)
        settings = {name: "when_required" for name in _CHECKSUM_SETTINGS if name not in own}
        client = client_with(config.merge(Config(**settings)))
    if limits.most_bytes is not None and limits.answer_seconds is not None:
        bound_answers(client, most_bytes=limits.most_bytes, seconds=limits.answer_seconds)
    return client


def is_amazon(endpoint_url: str) -> bool:
    """Returns whether the address belongs to AWS."""
    try:
        host = urlsplit(endpoint_url).hostname or ""
    except ValueError:
        return False
    return host.endswith(_AMAZON)


def is_signed(client: _Foreign) -> bool:
    """Returns whether the client has credentials."""
    from botocore import UNSIGNED  # noqa: PLC0415

    return client.meta.config.signature_version is not UNSIGNED


def sends_checksums(client: _Foreign) -> bool:
    """Returns whether each upload carries one of S3's newer checksums."""
    return bool(client.meta.config.request_checksum_calculation == "when_supported")


def _users_settings(session: Any) -> set[str]:  # noqa: ANN401 - the library ships no types
    """Returns the checksum settings in the user's variables or profile, which take precedence."""
    profile = session._session.get_scoped_config()  # boto3 has no other door to it
    return {
        name
        for name in _CHECKSUM_SETTINGS
        if f"AWS_{name.upper()}" in os.environ or name in profile
    }


# Limits the answers of a bucket: the SDK would read a broken server's answer for ever.

_PIECE_BYTES = 64 * 1024


class BoundedBody:
    """The body of one answer, within the limits. The SDK's time-outs are per piece, and a server
    may send a byte at a time; this limit covers the whole."""

    def __init__(
        self, raw: _Foreign, *, most_bytes: int, seconds: float, monotonic: Callable[[], float]
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
        piece: bytes = self._raw.read1(amount)
        self._left -= len(piece)
        if self._left < 0:
            self._raw.close()
            message = "the answer is too large"
            raise StoreUnavailableError(message)
        return piece


class _BoundedSession:
    """Wraps the SDK's own HTTP session, and reads with limits what that would read to the end."""

    def __init__(self, session: _Foreign, *, most_bytes: int, seconds: float) -> None:
        self._session, self._most_bytes, self._seconds = session, most_bytes, seconds

    def send(self, request: _Foreign) -> _Foreign:
        from botocore.exceptions import ConnectionClosedError, ReadTimeoutError  # noqa: PLC0415
        from botocore.response import URLLib3ProtocolError, URLLib3ReadTimeoutError  # noqa: PLC0415

        wants_stream, request.stream_output = request.stream_output, True
        answer = self._session.send(request)
        answer.raw = BoundedBody(
            answer.raw, most_bytes=self._most_bytes, seconds=self._seconds, monotonic=time.monotonic
        )
        if not wants_stream or answer.status_code >= 300:  # noqa: PLR2004 - not a success
            try:
                _ = answer.content
            except URLLib3ReadTimeoutError as error:  # as the SDK's own session does it
                raise ReadTimeoutError(endpoint_url=request.url, error=error) from error
            except URLLib3ProtocolError as error:
                raise ConnectionClosedError(endpoint_url=request.url, error=error) from error
        _refuse_redirect(request, answer)
        return answer

    def __getattr__(self, name: str) -> object:
        """Passes on whatever else the SDK asks of its session."""
        return getattr(self._session, name)


def _refuse_redirect(request: _Foreign, answer: _Foreign) -> None:
    """Raises StoreUnavailableError for a redirect without the bucket's region: the SDK would ask
    for that, be sent away again, and so on. Amazon's servers know it."""
    is_redirect = answer.status_code in _REDIRECTS and _REGION not in answer.headers
    if is_redirect and not is_amazon(request.url):
        raise StoreUnavailableError(f"the server answers with a redirect ({answer.status_code})")


def bound_answers(client: _Foreign, *, most_bytes: int, seconds: float) -> None:
    """Limits every later answer to `client` to this size and time."""
    endpoint = client._endpoint  # the SDK has no other door to what it reads
    endpoint.http_session = _BoundedSession(
        endpoint.http_session, most_bytes=most_bytes, seconds=seconds
    )
