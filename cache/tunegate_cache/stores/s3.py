"""A store in a bucket of S3 or of any server that speaks its API. Only this file knows boto3."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from tunegate_cache.stores.bounded_answers import bound_answers
from tunegate_cache.stores.store import (
    MAX_OBJECT_BYTES,
    AccessDeniedError,
    MaintainedStore,
    ObjectConflictError,
    ObjectNotFoundError,
    Pointer,
    PointerMovedError,
    StoreBusyError,
    StoreTimedOutError,
    StoreUnavailableError,
)
from tunegate_cache.stores.store_kind import StoreAddress, StoreKind

_T = TypeVar("_T")
_Client = Any
"""A boto3 client. The library ships no types, and takes half a second to import: only
who asks a bucket waits for it."""

_CONNECT_SECONDS, _READ_SECONDS, _ANSWER_SECONDS, _ATTEMPTS = 1, 3, 30, 3
_ABSENT = {"NoSuchKey", "404", "NotFound"}
_DENIED = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired"}
"""Refusals that S3 gives with status 400."""
_MAX_PAGES = 1000
"""The most pages of a listing, a million names: one that goes on after that would go on for
ever."""


class S3Store:
    """Objects under `prefix` of `bucket`. Credentials come from the usual chain of the SDK."""

    def __init__(
        self, bucket: str, prefix: str, *, endpoint_url: str | None, region: str | None
    ) -> None:
        self._bucket, self._prefix = bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._endpoint_url, self._region = endpoint_url, region
        self._making = threading.Lock()

    def read(self, name: str) -> bytes:
        return self._ask(lambda client: self._get(client, name)[0], name)

    def write(self, name: str, body: bytes) -> None:
        key = self._prefix + name
        try:
            answer = self._ask(
                lambda client: client.put_object(
                    Bucket=self._bucket, Key=key, Body=body, IfNoneMatch="*"
                )
            )
        except ObjectConflictError:
            self._require_equal(name, body)
            return
        if not answer.get("ETag"):
            # A store says so of what it has stored; a gateway that greets everybody does not.
            raise StoreUnavailableError(f"s3://{self._bucket}: an answer to a write without ETag")

    def names(self, prefix: str) -> Sequence[str]:
        return self._ask(lambda client: sorted(self._keys(client, self._prefix + prefix)))

    def read_part(self, name: str, start: int, size: int) -> bytes:
        part = {"Range": f"bytes={start}-{start + size - 1}"}
        body = self._ask(lambda client: self._get(client, name, **part)[0], name)
        if len(body) > size:
            # A server that ignores ranges answers with the whole object.
            return body[start : start + size]
        return body

    def read_pointer(self, name: str) -> Pointer:
        body, tag = self._ask(lambda client: self._get(client, name), name)
        return Pointer(body, tag)

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        if expected is None:
            self._move(name, body, {"IfNoneMatch": "*"})
            return
        try:
            self._move(name, body, {"IfMatch": expected})
        except PointerMovedError:
            # Ceph compares with the bare tag, and refuses every tag in the quotes it sends.
            bare = expected.strip('"')
            if bare == expected or self.read_pointer(name).tag != expected:
                raise
            self._move(name, body, {"IfMatch": bare})

    def delete(self, name: str) -> None:
        key = self._prefix + name
        self._ask(lambda client: client.delete_object(Bucket=self._bucket, Key=key))

    def _move(self, name: str, body: bytes, condition: Mapping[str, str]) -> None:
        key = self._prefix + name
        try:
            self._ask(
                lambda client: client.put_object(
                    Bucket=self._bucket, Key=key, Body=body, **condition
                ),
                name,
            )
        except (ObjectConflictError, ObjectNotFoundError):
            # Perhaps by ourselves: a request that was repeated because its answer was lost.
            if not self._holds(name, body):
                raise PointerMovedError(name) from None

    def _holds(self, name: str, body: bytes) -> bool:
        try:
            return self.read_pointer(name).body == body
        except ObjectNotFoundError:
            return False

    def _get(self, client: _Client, name: str, **part: str) -> tuple[bytes, str]:
        answer = client.get_object(Bucket=self._bucket, Key=self._prefix + name, **part)
        return answer["Body"].read(), str(answer.get("ETag", ""))

    def _require_equal(self, name: str, body: bytes) -> None:
        """Checks that the stored body is equal: another writer was first, or our own request, whose
        answer was lost."""
        try:
            stored = self.read(name)
        except ObjectNotFoundError:
            # 409: another request is in flight; whether it succeeds is not known.
            raise StoreUnavailableError(f"s3://{self._bucket}: {name} is being written") from None
        if stored != body:
            raise ObjectConflictError(f"s3://{self._bucket}: {name} holds another body")

    def _keys(self, client: _Client, prefix: str) -> Iterator[str]:
        pages = client.get_paginator("list_objects_v2")
        for number, page in enumerate(pages.paginate(Bucket=self._bucket, Prefix=prefix)):
            problem = "a listing without end" if number >= _MAX_PAGES else _problem(page, prefix)
            if problem:
                raise StoreUnavailableError(problem)
            for found in page.get("Contents", ()):
                yield found["Key"].removeprefix(self._prefix)

    def _ask(self, request: Callable[[_Client], _T], name: str | None = None) -> _T:
        """`name` is what may be absent. Messages hold only the code or the class of an error: the
        text of some holds signed addresses."""
        from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError  # noqa: PLC0415

        try:
            return request(self._connected())
        except StoreUnavailableError as error:
            raise type(error)(f"s3://{self._bucket}: {error}") from None
        except ClientError as error:
            code, status = _code(error.response), _status(error.response)
            if name is not None and code in _ABSENT:
                raise ObjectNotFoundError(name) from None
            raise _kind(code, status)(f"s3://{self._bucket}: {code}") from error
        except (ConnectTimeoutError, ReadTimeoutError) as error:
            message = f"s3://{self._bucket}: {type(error).__name__}"
            raise StoreTimedOutError(message) from error
        except Exception as error:
            # What the SDK and the HTTP library below it raise for nonsense has no end.
            message = f"s3://{self._bucket}: {type(error).__name__}"
            raise StoreUnavailableError(message) from error

    def _connected(self) -> _Client:
        """Made by the first request: the search for credentials may itself ask the network."""
        with self._making:
            return self._client

    @cached_property
    def _client(self) -> _Client:
        import boto3  # noqa: PLC0415
        from botocore.config import Config  # noqa: PLC0415

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
        session = boto3.session.Session()
        client = session.client(
            "s3", endpoint_url=self._endpoint_url, region_name=self._region, config=config
        )
        bound_answers(client, most_bytes=MAX_OBJECT_BYTES, seconds=_ANSWER_SECONDS)
        return client


def _problem(page: Mapping[str, Any], prefix: str) -> str | None:
    """Returns what shows that a page is not the requested one, or None: the SDK takes an empty body
    for a page, and records of another zone must not be read as ones of this."""
    if "IsTruncated" not in page:
        return "no listing"
    if not all(found["Key"].startswith(prefix) for found in page.get("Contents", ())):
        return "the listing of another place"
    return None


def _code(answer: Mapping[str, Any]) -> str:
    return str(answer.get("Error", {}).get("Code", "unknown"))


def _status(answer: Mapping[str, Any]) -> int:
    return int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _kind(code: str, status: int) -> type[StoreUnavailableError]:
    if code in _DENIED:
        return AccessDeniedError
    match status:
        case 409 | 412:
            return ObjectConflictError
        case 401 | 403:
            return AccessDeniedError
        case 429 | 503:
            return StoreBusyError
        case _:
            return StoreUnavailableError


def _open(address: StoreAddress) -> S3Store:
    bucket, prefix = address.parts.netloc, address.parts.path
    return S3Store(bucket, prefix, endpoint_url=address.endpoint_url, region=address.region)


_: type[MaintainedStore] = S3Store
S3 = StoreKind(
    form="s3://bucket/prefix",
    accepts=lambda address: bool(address.parts.netloc),
    open=_open,
    is_remote=True,
    advice=(
        "check the bucket's name, its region (cache.region) and cache.endpoint-url",
        (
            "give this shell credentials: aws sso login, AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or a role (docs/aws)"
        ),
    ),
    usd_per_1000_requests={"put": 0.005, "list": 0.005, "get": 0.0004},
)
"""Prices are those of S3 standard in us-east-1. Traffic to runners of
the bucket's region is free."""
