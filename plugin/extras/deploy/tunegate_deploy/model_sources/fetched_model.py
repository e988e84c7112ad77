"""A model, downloaded from its address and pinned to its version."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tunegate.artifacts.changes import ModelPin
from tunegate.errors import ArtifactError, ModelError
from tunegate_deploy.model_sources.addressed_model import AddressedModel
from tunegate_deploy.model_sources.download_limits import ByteCount, DownloadLimits, within_limits
from tunegate_deploy.model_sources.local_path import LocalPath
from tunegate_deploy.model_sources.model_files import content_digest


class FetchedModel(msgspec.Struct, frozen=True):
    """An ONNX file, or the directory of an artifact of ours, identified by `pin`."""

    path: Path
    pin: ModelPin
    is_local: bool


def fetched_model(
    model: AddressedModel, into: Path, limits: DownloadLimits, sha256: str = ""
) -> FetchedModel:
    """Fetches a model. `sha256` is the digest that the user requires, if any. Raises what the
    address raises, ModelError for other content, and EnvironmentUnfitError if it takes too long."""
    into.mkdir(parents=True)
    count = ByteCount(limits.bytes)
    try:
        version = within_limits(model.resolve, model.address, limits)
        path = within_limits(lambda: model.download(into, count), model.address, limits, into)
    except (ModelError, ArtifactError) as error:
        message = f"{model.address}: {_one_line(error, into)}"
        raise ModelError(message) from error
    found = content_digest(path)
    if sha256 not in {"", found}:
        message = f"{model.address}: its SHA-256 is {found}, not {sha256} as the address says."
        raise ModelError(message)
    pin = ModelPin(address=model.address, version=version, sha256=found)
    return FetchedModel(path, pin, isinstance(model, LocalPath))


def _one_line(error: Exception, into: Path) -> str:
    """Returns the problem, with paths relative to the model."""
    return str(error).replace(f"{into}/", "").rstrip(".") + "."
