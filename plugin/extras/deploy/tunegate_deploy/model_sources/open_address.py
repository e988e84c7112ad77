"""Opens the model that the user's text names, without a request."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import msgspec

from tunegate.errors import ConfigError
from tunegate.redaction import redact
from tunegate_deploy.model_sources.addressed_model import PAGE, AddressedModel
from tunegate_deploy.model_sources.https_file import HttpsFile
from tunegate_deploy.model_sources.hub_file import HubFile
from tunegate_deploy.model_sources.local_path import LocalPath
from tunegate_deploy.model_sources.mlflow_version import MlflowVersion
from tunegate_deploy.model_sources.oci_artifact import OciArtifact
from tunegate_deploy.model_sources.s3_object import S3Object
from tunegate_deploy.model_sources.source_settings import SourceSettings

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|(models):/")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_OTHER_DIGEST = re.compile(r"#(md5|sha\w*|blake\w*)=", re.IGNORECASE)
_KINDS: dict[str, Callable[[str, SourceSettings], AddressedModel]] = {
    "https": HttpsFile,
    "http": HttpsFile,
    "s3": S3Object,
    "oci": OciArtifact,
    "models": MlflowVersion,
    "hf": HubFile,
}


class OpenedAddress(msgspec.Struct, frozen=True):
    """`sha256` is the required digest, '' if the address has none."""

    model: AddressedModel
    sha256: str


def open_address(text: str, settings: SourceSettings) -> OpenedAddress:
    """Opens an address. Raises ConfigError if its kind is unknown, or it is incomplete."""
    address, sha256 = _split_digest(text)
    found = _SCHEME.match(address)
    if found is None:
        if not address:
            message = "an address is empty: name a file, a directory or an address."
            raise ConfigError(message)
        return OpenedAddress(LocalPath(Path(address)), sha256)
    scheme = (found[1] or found[2]).lower()
    if scheme not in _KINDS:
        known = ", ".join(f"{name}:" for name in sorted(_KINDS) if name != "http")
        message = (
            f"{redact(address, ())}: no models are taken from {scheme}:. "
            f"Write a path, or one of {known} ({PAGE})."
        )
        raise ConfigError(message)
    return OpenedAddress(_KINDS[scheme](address, settings), sha256)


def _split_digest(text: str) -> tuple[str, str]:
    """Returns the address, and the digest behind `#sha256=`. A path may contain a `#` of its
    own."""
    address, mark, digest = text.partition("#sha256=")
    if mark and not _SHA256.fullmatch(digest):
        message = f"#sha256={unquote(digest)[:80]}: not 64 digits from 0 to 9 and a to f."
        raise ConfigError(message)
    if other := _OTHER_DIGEST.search(address):
        message = f"{other[0]}: a model is pinned by #sha256= and 64 hexadecimal digits alone."
        raise ConfigError(message)
    return address, digest
