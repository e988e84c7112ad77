"""A client of S3: its credentials, the checksums it sends, and its time limits.

boto3 takes half a second to import, so only processes that use a bucket import it.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tunegate_cache.stores.bounded_answers import bound_answers

_Client = Any
"""A boto3 client; the library ships no types."""

_AMAZON = (".amazonaws.com", ".amazonaws.com.cn")
_CHECKSUM_SETTINGS = ("request_checksum_calculation", "response_checksum_validation")


class ClientLimits(msgspec.Struct, frozen=True, kw_only=True):
    """`most_bytes` and `answer_seconds` bound each whole answer; None bounds none."""

    connect_seconds: float
    read_seconds: float
    attempts: int
    most_bytes: int | None = None
    answer_seconds: float | None = None


def make_client(*, endpoint_url: str | None, region: str | None, limits: ClientLimits) -> _Client:
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

    def client_with(config: Config) -> _Client:
        return session.client("s3", endpoint_url=endpoint_url, region_name=region, config=config)

    client = client_with(config)
    # The address may come from a variable or a profile, too, so the client is asked for it.
    if not is_amazon(str(client.meta.endpoint_url)):
        # Other servers refuse or ignore the newer checksums; names carry sha-256 anyway.
        own = _users_settings(session)
        left = {name: "when_required" for name in _CHECKSUM_SETTINGS if name not in own}
        client = client_with(config.merge(Config(**left)))
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


def is_signed(client: _Client) -> bool:
    """Returns whether the client has credentials."""
    from botocore import UNSIGNED  # noqa: PLC0415

    return client.meta.config.signature_version is not UNSIGNED


def sends_checksums(client: _Client) -> bool:
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
