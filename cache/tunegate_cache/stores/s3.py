"""A store in a bucket of S3, or of any server with its API."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, TypeVar

from tunegate_cache.stores.gather_with_deadline import answer_within
from tunegate_cache.stores.s3_client import ClientLimits, is_signed, make_client, sends_checksums
from tunegate_cache.stores.s3_errors import (
    ABSENT_CODES,
    GIVE_CREDENTIALS,
    BeyondEndError,
    code_of,
    error_of,
    tls_error,
)
from tunegate_cache.stores.store import (
    MAX_OBJECT_BYTES,
    MaintainedStore,
    ObjectConflictError,
    ObjectNotFoundError,
    Pointer,
    PointerMovedError,
    RefusedConditionError,
    StoreTimedOutError,
    StoreUnavailableError,
    UnsupportedRequestError,
)
from tunegate_cache.stores.store_kind import StoreAddress, StoreKind

_T = TypeVar("_T")
_Client = Any
"""A boto3 client; the library ships no types."""

_LIMITS = ClientLimits(
    connect_seconds=1, read_seconds=3, attempts=3, most_bytes=MAX_OBJECT_BYTES, answer_seconds=30
)
_BUCKET_NAME = re.compile(r"[A-Za-z0-9._-]{1,255}")
_REQUEST_SECONDS = 45.0
"""The time limit of a whole request with its tries. The client's limits are those of a piece and of
a body, and a server may send the head a byte at a time, too."""
_UPLOADED_BYTES_PER_SECOND = 2**18
"""An upload may be this slow before the limit."""
_MAX_PAGES, _LISTING_SECONDS = 1000, 600.0
"""The most pages of a listing (a million names), and the longest: another would go on for ever."""
_CONDITION_TRIES = 3
"""The refusals of a condition that holds after which the server's conditional writes count as
broken: between a refusal and a look somebody else may act, but not each time."""
_NO_CONDITIONS = (
    "the server does not implement If-None-Match or If-Match, or refuses them where they hold, so "
    "each write looks first: two at once may replace each other. Run compaction from one scheduled "
    "job only"
)


class S3Store:
    """Objects under `prefix` of `bucket`. Credentials come from the SDK's usual chain; without any,
    requests are not signed. `sse` is the server's encryption, such as `aws:kms`."""

    def __init__(
        self,
        bucket: str,
        prefix: str,
        *,
        endpoint_url: str | None,
        region: str | None,
        sse: str | None = None,
        sse_kms_key: str | None = None,
    ) -> None:
        self._bucket, self._prefix = bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._endpoint_url, self._region = endpoint_url, region
        encryption = {"ServerSideEncryption": sse, "SSEKMSKeyId": sse_kms_key}
        self._encryption = {name: value for name, value in encryption.items() if value}
        self._knows_conditions = True
        self._client: _Client = None
        self._making = threading.Lock()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Returns what was learned about the server that its users should know."""
        return () if self._knows_conditions else (_NO_CONDITIONS,)

    def read(self, name: str) -> bytes:
        return self._ask(lambda client: self._get(client, name)[0], name)

    def write(self, name: str, body: bytes) -> None:
        try:
            answer = self._conditional_put(name, body, None)
        except ObjectConflictError as conflict:
            self._require_equal(name, body, conflict)
            return
        if not answer.get("ETag"):
            # A store sends one for what it has stored; a gateway that greets everybody does not.
            raise StoreUnavailableError(f"s3://{self._bucket}: an answer to a write without ETag")

    def names(self, prefix: str) -> Sequence[str]:
        return self._ask(lambda client: sorted(self._keys(client, self._prefix + prefix)))

    def read_part(self, name: str, start: int, size: int) -> bytes:
        part = {"Range": f"bytes={start}-{start + size - 1}"}
        try:
            body = self._ask(lambda client: self._get(client, name, **part)[0], name)
        except BeyondEndError:
            return b""
        if len(body) > size:
            # A server that ignores ranges answers with the whole object.
            return body[start : start + size]
        return body

    def read_pointer(self, name: str) -> Pointer:
        body, tag = self._ask(lambda client: self._get(client, name), name)
        return Pointer(body, tag)

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        try:
            self._conditional_put(name, body, expected, absent=name)
        except (ObjectConflictError, ObjectNotFoundError):
            # Perhaps by ourselves: a request is repeated if its answer was lost.
            if not self._holds(name, body):
                raise PointerMovedError(name) from None

    def delete(self, name: str) -> None:
        key = self._prefix + name
        place = {"Bucket": self._bucket, "Key": key}
        self._ask(
            lambda client: answer_within(_REQUEST_SECONDS, lambda: client.delete_object(**place))
        )

    def _conditional_put(
        self, name: str, body: bytes, expected: str | None, absent: str | None = None
    ) -> Mapping[str, Any]:
        """Writes if the object has the expected tag (None: is not there), by a condition of S3. If
        the server knows none, or refuses one that holds, the object is read first."""
        condition = {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected}
        for _ in range(_CONDITION_TRIES if self._knows_conditions else 0):
            try:
                return self._put_object(name, body, condition, absent)
            except UnsupportedRequestError:
                break  # perhaps because of the condition: if not, the write without fails alike
            except RefusedConditionError:
                if self._tag(name) != expected:
                    raise
                # Ceph compares with the bare tag, and refuses every tag in the quotes it sends.
                condition = {header: value.strip('"') for header, value in condition.items()}
        if self._tag(name) != expected:
            raise ObjectConflictError(f"s3://{self._bucket}: {name} is there")
        answer = self._put_object(name, body, {}, None)
        self._knows_conditions = False
        return answer

    def _tag(self, name: str) -> str | None:
        with suppress(ObjectNotFoundError):
            return self.read_pointer(name).tag
        return None

    def _put_object(
        self, name: str, body: bytes, condition: Mapping[str, str], absent: str | None
    ) -> Mapping[str, Any]:
        arguments = {"Bucket": self._bucket, "Key": self._prefix + name, "Body": body}
        arguments |= {**self._encryption, **condition}
        seconds = _REQUEST_SECONDS + len(body) / _UPLOADED_BYTES_PER_SECOND
        return self._ask(
            lambda client: answer_within(seconds, lambda: client.put_object(**arguments)), absent
        )

    def _holds(self, name: str, body: bytes) -> bool:
        with suppress(ObjectNotFoundError):
            return self.read_pointer(name).body == body
        return False

    def _get(self, client: _Client, name: str, **part: str) -> tuple[bytes, str]:
        def read_whole() -> tuple[bytes, str]:
            answer = client.get_object(Bucket=self._bucket, Key=self._prefix + name, **part)
            return answer["Body"].read(), str(answer.get("ETag", ""))

        return answer_within(_REQUEST_SECONDS, read_whole)

    def _require_equal(self, name: str, body: bytes, conflict: ObjectConflictError) -> None:
        """Checks that the stored body is equal: another writer, or our own request whose answer was
        lost, was first."""
        try:
            stored = self.read(name)
        except ObjectNotFoundError:
            # 409: another request is in flight; whether it succeeds is not known.
            is_free = isinstance(conflict, RefusedConditionError)
            what = "is refused as if it were there (412)" if is_free else "is being written"
            raise StoreUnavailableError(f"s3://{self._bucket}: {name} {what}") from None
        if stored != body:
            raise ObjectConflictError(f"s3://{self._bucket}: {name} holds another body")

    def _keys(self, client: _Client, prefix: str) -> Iterator[str]:
        lists = client.get_paginator("list_objects_v2")
        pages = iter(lists.paginate(Bucket=self._bucket, Prefix=prefix))
        deadline = time.monotonic() + _LISTING_SECONDS
        for number in count():
            seconds = min(_REQUEST_SECONDS, max(0.0, deadline - time.monotonic()))
            page = answer_within(seconds, lambda: next(pages, None))
            if page is None:
                return
            problem = "a listing without end" if number >= _MAX_PAGES else _problem(page, prefix)
            if problem:
                raise StoreUnavailableError(problem)
            for entry in page.get("Contents", ()):
                yield entry["Key"].removeprefix(self._prefix)

    def _ask(self, request: Callable[[_Client], _T], name: str | None = None) -> _T:
        """Sends a request; `name` is the object that may be absent. Messages contain only an
        error's code or class: some texts contain signed addresses."""
        from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError, SSLError  # noqa: PLC0415

        where = f"s3://{self._bucket}"
        try:
            return request(self._client or answer_within(_REQUEST_SECONDS, self._connect))
        except StoreUnavailableError as error:
            raise type(error)(f"{where}: {error}", advice=error.advice) from None
        except ClientError as error:
            if name is not None and code_of(error.response) in ABSENT_CODES:
                raise ObjectNotFoundError(name) from None
            signs, sums = is_signed(self._client), sends_checksums(self._client)
            raise error_of(error, where, is_signed=signs, sends_checksums=sums) from error
        except (ConnectTimeoutError, ReadTimeoutError) as error:
            raise StoreTimedOutError(f"{where}: {type(error).__name__}") from error
        except SSLError as error:
            raise tls_error(error, where) from error
        except Exception as error:
            # What the SDK and the HTTP library below it raise for nonsense has no end.
            raise StoreUnavailableError(f"{where}: {type(error).__name__}") from error

    def _connect(self) -> _Client:
        """Returns the client, made by the first request: the search for credentials may use the
        network, or run the user's program, and take for ever. Later requests find it made."""
        with self._making:
            if self._client is None:
                self._client = make_client(
                    endpoint_url=self._endpoint_url, region=self._region, limits=_LIMITS
                )
            return self._client


def _problem(page: Mapping[str, Any], prefix: str) -> str | None:
    """Returns what shows that a page is not the requested one, or None: the SDK takes an empty body
    for a page, and another zone's records must not be read as this one's."""
    if "IsTruncated" not in page:
        return "no listing"
    if not all(entry["Key"].startswith(prefix) for entry in page.get("Contents", ())):
        return "the listing of another place"
    return None


def _open(address: StoreAddress) -> S3Store:
    bucket, prefix = address.parts.netloc, address.parts.path
    return S3Store(
        bucket,
        prefix,
        endpoint_url=address.endpoint_url,
        region=address.region,
        sse=address.sse,
        sse_kms_key=address.sse_kms_key,
    )


def _accepts(address: StoreAddress) -> bool:
    """Keys before the bucket's name, and a query behind the prefix, would be shown in logs."""
    parts = address.parts
    is_plain = not (parts.query or parts.fragment)
    return is_plain and _BUCKET_NAME.fullmatch(parts.netloc) is not None


_: type[MaintainedStore] = S3Store
S3 = StoreKind(
    form="s3://bucket/prefix",
    accepts=_accepts,
    open=_open,
    is_remote=True,
    advice=(
        "check the bucket's name, its region (cache.region) and cache.endpoint-url",
        GIVE_CREDENTIALS,
    ),
    encryptions=("AES256", "aws:kms", "aws:kms:dsse"),
    usd_per_1000_requests={"put": 0.005, "list": 0.005, "get": 0.0004},
)
"""List prices of S3 standard in us-east-1. Traffic to runners in the bucket's region is free."""
