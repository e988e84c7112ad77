"""A store in a bucket of S3 or of any server that speaks its API. Only this file knows boto3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tunegate_cache.store import ObjectNotFoundError, ObjectStore, StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONNECT_SECONDS, _READ_SECONDS, _ATTEMPTS = 1, 3, 3
_LOST_RACE = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}
_ABSENT = {"NoSuchKey", "404", "NotFound"}


class S3Store:
    """Objects under `prefix` of `bucket`. Credentials come from the usual chain of the SDK."""

    def __init__(
        self, bucket: str, prefix: str, *, endpoint_url: str | None, region: str | None
    ) -> None:
        self._bucket, self._prefix = bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        # Servers other than AWS refuse or ignore the newer checksums; names carry sha-256 anyway.
        checksums = "when_required" if endpoint_url else "when_supported"
        config = Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            max_pool_connections=32,
            tcp_keepalive=True,
            request_checksum_calculation=checksums,
            response_checksum_validation=checksums,
        )
        self._client = boto3.session.Session().client(
            "s3", endpoint_url=endpoint_url, region_name=region, config=config
        )

    def read(self, name: str) -> bytes:
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
            body: bytes = answer["Body"].read()
        except ClientError as error:
            if _code(error) in _ABSENT:
                raise ObjectNotFoundError(name) from None
            raise self._fault(error) from error
        except (BotoCoreError, OSError) as error:
            raise self._fault(error) from error
        return body

    def write(self, name: str, body: bytes) -> None:
        try:
            self._client.put_object(
                Bucket=self._bucket, Key=self._prefix + name, Body=body, IfNoneMatch="*"
            )
        except ClientError as error:
            # The name says the content: whoever won the race wrote the same bytes.
            if _code(error) not in _LOST_RACE:
                raise self._fault(error) from error
        except (BotoCoreError, OSError) as error:
            raise self._fault(error) from error

    def names(self, prefix: str) -> Sequence[str]:
        try:
            return sorted(self._keys(self._prefix + prefix))
        except (ClientError, BotoCoreError, OSError) as error:
            raise self._fault(error) from error

    def _keys(self, prefix: str) -> Iterator[str]:
        pages = self._client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self._bucket, Prefix=prefix):
            for found in page.get("Contents", ()):
                yield found["Key"].removeprefix(self._prefix)

    def _fault(self, error: Exception) -> StoreUnavailableError:
        """Only the code or the class: the text of some errors holds signed addresses."""
        what = _code(error) if isinstance(error, ClientError) else type(error).__name__
        return StoreUnavailableError(f"s3://{self._bucket}: {what}")


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "unknown"))


_: type[ObjectStore] = S3Store
