"""A model on this machine: an ONNX file, or the directory of an artifact of ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tunegate.errors import ConfigError, ModelError
from tunegate.regular_files import opened_inside, where_it_leads
from tunegate.system.output.artifact_file import ARTIFACT_FILE
from tunegate_deploy.model_sources.addressed_model import PAGE, AddressedModel
from tunegate_deploy.model_sources.download_limits import ByteCount
from tunegate_deploy.model_sources.model_files import bring_artifact, bring_model

_PIECE_BYTES = 2**20


class LocalPath:
    """Copies the files: what is measured is what was pinned, whatever becomes of the path."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def address(self) -> str:
        return str(self._path)

    def resolve(self) -> str:
        real = where_it_leads(self._path)
        if not real.exists():
            message = (
                f"{self._path}: no such file. Name an ONNX file, a directory with an "
                f"artifact.json, or an address ({PAGE})."
            )
            raise ConfigError(message)
        if real.is_dir() and not (real / ARTIFACT_FILE).is_file():
            message = (
                f"{self._path}: a directory without an {ARTIFACT_FILE}. Name an ONNX file in it."
            )
            raise ConfigError(message)
        return "" if real == self._path.absolute() else str(real)

    def download(self, into: Path, count: ByteCount) -> Path:
        real = where_it_leads(self._path)
        if real.is_dir():
            return bring_artifact(into, lambda name: _read_pieces(real, name), count)
        return bring_model(real.name, into, lambda name: _read_pieces(real.parent, name), count)


def _read_pieces(directory: Path, name: str) -> Iterator[bytes]:
    """Reads a file. Raises ModelError if it is missing, unreadable or behind a link, whose target
    would end up in what is uploaded."""
    file = directory / name
    try:
        found = opened_inside(directory, name)
        if found is None:
            file.lstat()
            message = f"its file {name!r} is not a plain file, or is behind a symbolic link"
            raise ModelError(message)
        with found:
            while piece := found.read(_PIECE_BYTES):
                yield piece
    except OSError as error:
        message = f"its file {name!r} cannot be read ({error.strerror})"
        raise ModelError(message) from error


_: type[AddressedModel] = LocalPath
