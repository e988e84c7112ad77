"""A model of a Hugging Face hub, at a revision that is resolved to a commit."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TypeVar
from urllib.parse import unquote

from tunegate.errors import ConfigError, EnvironmentUnfitError, ModelError, TunegateError
from tunegate_deploy.model_sources.addressed_model import AddressedModel
from tunegate_deploy.model_sources.download_limits import ByteCount
from tunegate_deploy.model_sources.model_files import bring_model, pieces_of, require_inside
from tunegate_deploy.model_sources.source_settings import SourceSettings
from tunegate_deploy.model_sources.web import untrusted_server

_T = TypeVar("_T")
_FORM = re.compile(
    r"hf://(?P<repository>[\w.-]+/[\w.-]+)(?:@(?P<revision>[^/@]+))?(?:/(?P<path>.+))?"
)
_QUIET = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_XET": "1",
}
"""The client's settings, unless the user has others. Its faster protocol starts threads that cannot
be stopped."""
_USUAL = ("model.onnx", "onnx/model.onnx")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_CLIENT_FOLDER = ".client"
_ASK_SECONDS = 30.0
_FIRST_FAULT_OF_SERVER, _TOO_MANY = 500, 429


class HubFile:
    """The hub is HF_ENDPOINT, and credentials are the client's: HF_TOKEN or `hf auth login`."""

    def __init__(self, address: str, settings: SourceSettings) -> None:
        """Raises ConfigError for an incomplete address, and if the client is missing."""
        found = _FORM.fullmatch(address)
        if found is None:
            message = f"{address}: write hf://owner/name@revision, or with /path/model.onnx."
            raise ConfigError(message)
        self._repository = found["repository"]
        self._revision = unquote(found["revision"] or "main")
        self._path, self._address, self._commit = found["path"] or "", address, ""
        if find_spec("huggingface_hub") is None:
            message = (
                f"{address}: the hub's client is not installed. "
                f"Run: python -m pip install 'tunegate-deploy[hub]'"
            )
            raise ConfigError(message)

    @property
    def address(self) -> str:
        return self._address

    def resolve(self) -> str:
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        from huggingface_hub import HfApi  # noqa: PLC0415

        found = self._ask(
            lambda: HfApi().model_info(
                self._repository, revision=self._revision, timeout=_ASK_SECONDS
            )
        )
        if not _COMMIT.fullmatch(found.sha or ""):
            raise EnvironmentUnfitError(f"{self.address}: the hub names no commit. Try again.")
        self._commit = found.sha
        names = [file.rfilename for file in found.siblings or ()]
        self._path = self._path or model_among(names, self.address)
        return f"commit {self._commit}"

    def download(self, into: Path, count: ByteCount) -> Path:
        model = PurePosixPath(self._path)
        require_inside(self._path)

        def read(name: str) -> Iterator[bytes]:
            yield from pieces_of(self._fetch(str(model.with_name(name)), into))

        found = bring_model(model.name, into, read, count)
        shutil.rmtree(into / _CLIENT_FOLDER)
        return found

    def _fetch(self, name: str, into: Path) -> Path:
        from huggingface_hub import hf_hub_download  # noqa: PLC0415

        require_inside(name)
        folder = into / _CLIENT_FOLDER
        found = self._ask(
            lambda: hf_hub_download(
                self._repository, name, revision=self._commit, local_dir=str(folder)
            )
        )
        file = Path(found)
        if file.is_symlink() or not file.resolve().is_relative_to(folder.resolve()):
            message = f"{name!r} is no file of the repository"
            raise ModelError(message)
        return file

    def _ask(self, request: Callable[[], _T]) -> _T:
        """Sends a request. Messages contain only the kind of an error: some texts contain signed
        addresses."""
        from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, HFValidationError  # noqa: PLC0415

        try:
            return request()
        except TunegateError:
            raise
        except (HFValidationError, EntryNotFoundError) as error:
            raise ConfigError(f"{self.address}: {type(error).__name__}.") from None
        except HfHubHTTPError as error:
            status = getattr(error.response, "status_code", _FIRST_FAULT_OF_SERVER)
            said = f"{self.address}: {type(error).__name__} ({status})."
            if status >= _FIRST_FAULT_OF_SERVER or status == _TOO_MANY:
                raise EnvironmentUnfitError(said) from None
            raise ConfigError(f"{said} Private ones need HF_TOKEN.") from None
        except Exception as error:  # noqa: BLE001 -- what the HTTP library below the client raises
            message = f"{self.address}: {type(error).__name__}. Try again."
            untrusted = untrusted_server(error, self.address)
            raise EnvironmentUnfitError(untrusted or message) from None


def model_among(names: list[str], address: str) -> str:
    """Returns the only or usually named model. Raises ConfigError if the repository has several
    others."""
    models = sorted(name for name in names if name.lower().endswith(".onnx"))
    if len(models) == 1:
        return models[0]
    for usual in _USUAL:
        if usual in models:
            return usual
    listed = f" ({', '.join(models[:4])})" if models else ""
    message = f"{address}: {len(models)} ONNX files{listed}. Write the path of one behind it."
    raise ConfigError(message)


_: type[AddressedModel] = HubFile
