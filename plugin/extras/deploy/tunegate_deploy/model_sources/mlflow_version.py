"""A model of an MLflow registry, by alias or version, with the flavor `onnx`."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from tunegate.errors import ConfigError, EnvironmentUnfitError, ModelError, TunegateError
from tunegate.system.strict_yaml import YamlProblemError, read_yaml
from tunegate_deploy.model_sources.addressed_model import AddressedModel, MovableModel
from tunegate_deploy.model_sources.download_limits import ByteCount
from tunegate_deploy.model_sources.model_files import (
    bring_model,
    pieces_of,
    require_inside,
)
from tunegate_deploy.model_sources.source_settings import SourceSettings
from tunegate_deploy.model_sources.web import untrusted_server

_T = TypeVar("_T")
_FORM = re.compile(r"models:/(?P<name>[^/@]+)(?:@(?P<alias>[^/@]+)|/(?P<version>[0-9]+))")
_SERVERS = frozenset({"http", "https", "databricks", "databricks-uc"})
_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}
"""The client's settings, unless the user has others: by itself it would retry for minutes."""
_FIRST_FAULT_OF_SERVER = 500
_TOO_MANY = 429
_CLIENT_FOLDER = ".client"


class _Onnx(msgspec.Struct):
    data: str


class _Flavors(msgspec.Struct):
    onnx: _Onnx | None = None


class _ModelFile(msgspec.Struct):
    """The fields of the file `MLmodel` that are read."""

    flavors: _Flavors


class MlflowVersion:
    """The server is MLFLOW_REGISTRY_URI or MLFLOW_TRACKING_URI, and credentials are the client's:
    MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN."""

    def __init__(self, address: str, settings: SourceSettings) -> None:
        """Raises ConfigError for an incomplete address, and if the client or its server is
        missing."""
        found = _FORM.fullmatch(address)
        if found is None:
            message = f"{address}: write models:/name@alias or models:/name/version."
            raise ConfigError(message)
        self.name, self._alias = found["name"], found["alias"] or ""
        self.version = found["version"] or ""
        self._address = address
        _require_client(address)

    @property
    def address(self) -> str:
        return self._address

    def resolve(self) -> str:
        if self._alias:
            self.version = self._version_of_alias()
        found = self._ask(lambda: self._client.get_model_version(self.name, self.version))
        self._require_remote(str(found.source))
        return f"version {self.version}"

    def download(self, into: Path, count: ByteCount) -> Path:
        model = self._onnx_file(into)

        def read(name: str) -> Iterator[bytes]:
            yield from pieces_of(self._fetch(str(model.with_name(name)), into))

        found = bring_model(model.name, into, read, count)
        shutil.rmtree(into / _CLIENT_FOLDER)
        return found

    def require_movable_to(self, candidate: AddressedModel) -> None:
        if not self._alias:
            message = f"{self.address}: --promote moves an alias. Write models:/{self.name}@alias."
            raise ConfigError(message)
        self._sibling(candidate)

    def move_to(self, candidate: AddressedModel, downloaded: Path) -> str:
        wanted = self._sibling(candidate).version
        now = self._version_of_alias()
        if now != self.version:
            message = (
                f"{self.address}: names version {now} by now, not {self.version}, and was not "
                f"moved. Run it again."
            )
            raise EnvironmentUnfitError(message)
        self._ask(lambda: self._client.set_registered_model_alias(self.name, self._alias, wanted))
        if self._version_of_alias() != wanted:
            message = f"{self.address}: somebody else moved it at the same time. Look at it."
            raise EnvironmentUnfitError(message)
        return f"version {wanted}"

    def _sibling(self, candidate: AddressedModel) -> MlflowVersion:
        if isinstance(candidate, MlflowVersion) and candidate.name == self.name:
            return candidate
        message = f"{self.address}: --promote needs a candidate that is a version of {self.name}."
        raise ConfigError(message)

    def _version_of_alias(self) -> str:
        found = self._ask(lambda: self._client.get_model_version_by_alias(self.name, self._alias))
        return str(found.version)

    def _require_remote(self, source: str) -> None:
        """Raises ModelError for a source on a disk: it would be on this machine's."""
        if source.startswith("models:/"):
            model_id = source.removeprefix("models:/")
            source = str(
                self._ask(lambda: self._client.get_logged_model(model_id)).artifact_location
            )
        if urlsplit(source).scheme in {"", "file"}:
            message = "its files are on a disk of the server's. Serve its artifacts"
            raise ModelError(message)

    def _onnx_file(self, into: Path) -> PurePosixPath:
        described = self._fetch("MLmodel", into).read_text(errors="replace")
        try:
            onnx = msgspec.convert(read_yaml(described), _ModelFile).flavors.onnx
        except (YamlProblemError, msgspec.ValidationError):
            onnx = None
        if onnx is None:
            message = "it has no flavor onnx: log it with mlflow.onnx.log_model"
            raise ModelError(message)
        require_inside(onnx.data)
        return PurePosixPath(onnx.data)

    def _fetch(self, name: str, into: Path) -> Path:
        """Fetches one file of the version with the client, never through a link."""
        require_inside(name)
        folder = into / _CLIENT_FOLDER
        folder.mkdir(exist_ok=True)
        from mlflow.artifacts import download_artifacts  # noqa: PLC0415

        address = f"models:/{self.name}/{self.version}/{name}"
        found = Path(self._ask(lambda: download_artifacts(address, dst_path=str(folder))))
        if found.is_symlink() or not found.is_file() or not found.resolve().is_relative_to(folder):
            message = f"{name!r} is no file of the version"
            raise ModelError(message)
        return found

    def _ask(self, request: Callable[[], _T]) -> _T:
        """Sends a request. Messages contain only an error's code: some texts contain addresses and
        answers."""
        from mlflow.exceptions import MlflowException  # noqa: PLC0415

        try:
            return request()
        except MlflowException as error:
            if untrusted := untrusted_server(error, self.address, "REQUESTS_CA_BUNDLE"):
                raise EnvironmentUnfitError(untrusted) from None
            status, code = error.get_http_status_code(), error.error_code
            if status >= _FIRST_FAULT_OF_SERVER or status == _TOO_MANY:
                message = f"{self.address}: {code}. Look whether MLflow's server answers."
                raise EnvironmentUnfitError(message) from None
            raise ConfigError(f"{self.address}: {code} ({status}).") from None
        except TunegateError:
            raise
        except Exception as error:  # noqa: BLE001 -- what the clients below MLflow's raise
            message = f"{self.address}: {type(error).__name__}. Try again."
            untrusted = untrusted_server(error, self.address, "REQUESTS_CA_BUNDLE")
            raise EnvironmentUnfitError(untrusted or message) from None

    @cached_property
    def _client(self) -> Any:
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        from mlflow import MlflowClient  # noqa: PLC0415

        return MlflowClient()


def _require_client(address: str) -> None:
    if find_spec("mlflow") is None:
        message = (
            f"{address}: MLflow's client is not installed. "
            f"Run: python -m pip install 'tunegate-deploy[mlflow]'"
        )
        raise ConfigError(message)
    server = os.environ.get("MLFLOW_REGISTRY_URI") or os.environ.get("MLFLOW_TRACKING_URI", "")
    if (urlsplit(server).scheme or server) not in _SERVERS:
        message = (
            f"{address}: no server to ask. Set MLFLOW_TRACKING_URI to its address, such as "
            f"https://mlflow.example.com."
        )
        raise ConfigError(message)


_: type[MovableModel] = MlflowVersion
