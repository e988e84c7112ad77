"""A model in a bucket: one key with its data files beside it, or a prefix that ends in `/` with an
artifact of ours. It has its own requests, as the cache's store knows no versions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs

from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate.system.cache.shared_cache import refuse_committed_settings
from tunegate.system.output.artifact_file import ARTIFACT_FILE
from tunegate_cache.stores.s3_client import ClientLimits, is_signed, make_client
from tunegate_cache.stores.s3_errors import GIVE_CREDENTIALS, tls_error
from tunegate_deploy.model_sources.addressed_model import AddressedModel, MovableModel
from tunegate_deploy.model_sources.download_limits import ByteCount
from tunegate_deploy.model_sources.model_files import bring_artifact, bring_model
from tunegate_deploy.model_sources.source_settings import SourceSettings

_T = TypeVar("_T")
_FORM = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,62})/([^?]+)(?:\?(.*))?", re.IGNORECASE)
_LIMITS = ClientLimits(connect_seconds=5, read_seconds=30, attempts=3)
_PIECE_BYTES = 2**20
_MOVED = frozenset({404, 409, 412})
_UNVERSIONED = "null"
_Client = Any
"""A boto3 client; the library ships no types."""


class S3Object:
    """Credentials come from the SDK's usual chain; endpoint and region are the cache's."""

    def __init__(self, address: str, settings: SourceSettings) -> None:
        """Raises ConfigError for an incomplete address."""
        found = _FORM.fullmatch(address)
        if found is None:
            message = f"{address.partition('?')[0]}: write s3://bucket/key, or s3://bucket/prefix/."
            raise ConfigError(message)
        self._bucket, self._key = found[1], found[2]
        self._version = parse_qs(found[3] or "").get("versionId", [""])[0]
        self._settings = settings
        self._pinned: dict[str, str] = {}

    @property
    def address(self) -> str:
        return f"s3://{self._bucket}/{self._key}"

    def resolve(self) -> str:
        asked = {"VersionId": self._version} if self._version else {}
        key = self._key + ARTIFACT_FILE if self._key.endswith("/") else self._key
        answer = self._ask(lambda client: client.head_object(Bucket=self._bucket, Key=key, **asked))
        version = str(answer.get("VersionId") or self._version)
        tag = str(answer.get("ETag", ""))
        self._pinned = {"IfMatch": tag} if tag else {}
        if version and version != _UNVERSIONED:
            self._pinned["VersionId"] = version
            return f"version {version}, ETag {tag}"
        return f"ETag {tag}"

    def download(self, into: Path, count: ByteCount) -> Path:
        if self._key.endswith("/"):
            prefix, first = self._key, ARTIFACT_FILE
        else:
            prefix, first = self._key[: self._key.rfind("/") + 1], self._key.rpartition("/")[2]

        def read(name: str) -> Iterator[bytes]:
            return self._pieces(prefix + name, self._pinned if name == first else {})

        if self._key.endswith("/"):
            return bring_artifact(into, read, count)
        return bring_model(first, into, read, count)

    def require_movable_to(self, candidate: AddressedModel) -> None:
        if self._version or self._key.endswith("/"):
            message = f"{self.address}: only a key without a version can be moved by --promote."
            raise ConfigError(message)

    def move_to(self, candidate: AddressedModel, downloaded: Path) -> str:
        if len(list(downloaded.parent.iterdir())) > 1 or downloaded.is_dir():
            message = f"{self.address}: one key holds no model with data files. Move it yourself."
            raise ConfigError(message)
        tag = self._pinned["IfMatch"]
        if self._current_tag() != tag:
            raise EnvironmentUnfitError(self._moved_text())
        try:
            answer = self._put_if_unchanged(downloaded, tag)
        except _MovedError:
            # Ceph compares with the bare tag, and refuses every tag in the quotes it sends.
            if tag == tag.strip('"') or self._current_tag() != tag:
                raise EnvironmentUnfitError(self._moved_text()) from None
            answer = self._put_if_unchanged(downloaded, tag.strip('"'))
        return f"ETag {answer.get('ETag', '')}"

    def _put_if_unchanged(self, file: Path, tag: str) -> Mapping[str, Any]:
        def put(client: _Client) -> Mapping[str, Any]:
            with file.open("rb") as body:
                answer: Mapping[str, Any] = client.put_object(
                    Bucket=self._bucket, Key=self._key, Body=body, IfMatch=tag
                )
            return answer

        return self._ask(put)

    def _current_tag(self) -> str:
        answer = self._ask(lambda client: client.head_object(Bucket=self._bucket, Key=self._key))
        return str(answer.get("ETag", ""))

    def _moved_text(self) -> str:
        return f"{self.address}: changed since it was read, and was not replaced. Run it again."

    def _pieces(self, key: str, pinned: Mapping[str, str]) -> Iterator[bytes]:
        answer = self._ask(lambda client: client.get_object(Bucket=self._bucket, Key=key, **pinned))
        pieces = answer["Body"].iter_chunks(_PIECE_BYTES)
        while piece := self._ask(lambda _: next(pieces, b"")):
            yield piece

    def _ask(self, request: Callable[[_Client], _T]) -> _T:
        """Sends a request. Messages contain only an error's code or class: texts may contain signed
        addresses."""
        from botocore.exceptions import (  # noqa: PLC0415
            BotoCoreError,
            ClientError,
            NoCredentialsError,
            PartialCredentialsError,
            ProfileNotFound,
            SSLError,
        )

        try:
            return request(self._client)
        except ClientError as error:
            raise self._error_of(error.response) from None
        except (NoCredentialsError, PartialCredentialsError, ProfileNotFound) as error:
            message = f"{self.address}: {type(error).__name__}. {_GIVE}."
            raise ConfigError(message) from None
        except SSLError as error:
            told = tls_error(error, self.address)
            advice = "".join(f" {_sentence(each)}" for each in told.advice)
            raise EnvironmentUnfitError(f"{told}.{advice}") from None
        except (BotoCoreError, OSError, ValueError) as error:
            message = f"{self.address}: {type(error).__name__}. Try again."
            raise EnvironmentUnfitError(message) from None

    def _error_of(self, response: Mapping[str, Any]) -> Exception:
        code = str(response.get("Error", {}).get("Code", "unknown"))
        status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        code = _SAID.get(status, code) if code.isdigit() else code
        if status == 412 or status == 409:  # noqa: PLR1714, PLR2004
            return _MovedError(self._moved_text())
        if status in {400, 401, 403, 404}:
            unsigned = status in {401, 403} and not is_signed(self._client)
            hint = f" No credentials were found. {_GIVE}." if unsigned else ""
            return ConfigError(f"{self.address}: {code} ({status}).{hint}")
        return EnvironmentUnfitError(f"{self.address}: {code} ({status}). Try again.")

    @cached_property
    def _client(self) -> _Client:
        refuse_committed_settings(Path.cwd())
        return make_client(
            endpoint_url=self._settings.endpoint_url,
            region=self._settings.region,
            limits=_LIMITS,
        )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


_GIVE = _sentence(GIVE_CREDENTIALS)[:-1]
_SAID = {
    400: "not understood; a versionId may be none of its versions",
    401: "refused",
    403: "refused, or not there",
    404: "not there",
}
"""The answers to a HEAD, which has no body to say more."""


class _MovedError(EnvironmentUnfitError):
    """The key's content has changed since it was read."""


_: type[MovableModel] = S3Object
