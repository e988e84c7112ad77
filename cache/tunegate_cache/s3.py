"""A store in a bucket of S3 or of any server that speaks its API. Only this file knows boto3."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from tunegate_cache.store import (
    MAX_OBJECT_BYTES,
    AccessDeniedError,
    ObjectConflictError,
    ObjectNotFoundError,
    ObjectStore,
    StoreUnavailableError,
)

_CONNECT_SECONDS, _READ_SECONDS, _ATTEMPTS = 1, 3, 3
_TAKEN = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}
_ABSENT = {"NoSuchKey", "404", "NotFound"}
_DENIED = {"AccessDenied", "AllAccessDisabled", "InvalidAccessKeyId", "ExpiredToken", "403"}
_FAULTS = (ClientError, BotoCoreError, ResponseParserError, OSError, ValueError)
_CHUNK_BYTES = 1024 * 1024


class S3Store:
    """Objects under `prefix` of `bucket`. Credentials come from the usual chain of the SDK."""

    def __init__(
        self, bucket: str, prefix: str, *, endpoint_url: str | None, region: str | None
    ) -> None:
        self._bucket, self._prefix = bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._endpoint_url, self._region = endpoint_url, region
        self._making = threading.Lock()

    def read(self, name: str) -> bytes:
        try:
            return self._get(name)
        except ClientError as error:
            if _code(error) in _ABSENT:
                raise ObjectNotFoundError(name) from None
            raise self._fault(error) from error
        except _FAULTS as error:
            raise self._fault(error) from error

    def write(self, name: str, body: bytes) -> None:
        try:
            self._connected().put_object(
                Bucket=self._bucket, Key=self._prefix + name, Body=body, IfNoneMatch="*"
            )
        except ClientError as error:
            if _code(error) not in _TAKEN:
                raise self._fault(error) from error
            self._require_equal(name, body)
        except _FAULTS as error:
            raise self._fault(error) from error

    def names(self, prefix: str) -> Sequence[str]:
        try:
            return sorted(self._keys(self._prefix + prefix))
        except _FAULTS as error:
            raise self._fault(error) from error

    def _get(self, name: str) -> bytes:
        answer = self._connected().get_object(Bucket=self._bucket, Key=self._prefix + name)
        body = bytearray()
        for chunk in answer["Body"].iter_chunks(_CHUNK_BYTES):
            body += chunk
            if len(body) > MAX_OBJECT_BYTES:
                message = f"s3://{self._bucket}: {name} is larger than {MAX_OBJECT_BYTES} bytes"
                raise StoreUnavailableError(message)
        return bytes(body)

    def _require_equal(self, name: str, body: bytes) -> None:
        """Somebody was first, or our own request was, whose answer was lost."""
        try:
            stored = self.read(name)
        except ObjectNotFoundError:
            # 409: another request is in flight; whether it succeeds is not known.
            raise StoreUnavailableError(f"s3://{self._bucket}: {name} is being written") from None
        if stored != body:
            raise ObjectConflictError(f"s3://{self._bucket}: {name} holds another body")

    def _keys(self, prefix: str) -> Iterator[str]:
        pages = self._connected().get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self._bucket, Prefix=prefix):
            for found in page.get("Contents", ()):
                yield found["Key"].removeprefix(self._prefix)

    def _connected(self) -> Any:  # noqa: ANN401 - boto3 ships no types
        """Made by the first request: the search for credentials may itself ask the network."""
        with self._making:
            return self._client

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 - boto3 ships no types
        # Servers other than AWS refuse or ignore the newer checksums; names carry sha-256 anyway.
        checksums = "when_required" if self._endpoint_url else "when_supported"
        config = Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            max_pool_connections=32,
            tcp_keepalive=True,
            request_checksum_calculation=checksums,
            response_checksum_validation=checksums,
        )
        return boto3.session.Session().client(
            "s3", endpoint_url=self._endpoint_url, region_name=self._region, config=config
        )

    def _fault(self, error: Exception) -> StoreUnavailableError:
        """Only the code or the class: the text of some errors holds signed addresses."""
        if not isinstance(error, ClientError):
            return StoreUnavailableError(f"s3://{self._bucket}: {type(error).__name__}")
        kind = AccessDeniedError if _code(error) in _DENIED else StoreUnavailableError
        return kind(f"s3://{self._bucket}: {_code(error)}")


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "unknown"))


_: type[ObjectStore] = S3Store
