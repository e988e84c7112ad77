"""A model on this machine: an ONNX file, or the directory of an artifact of ours."""

from __future__ import annotations

from pathlib import Path

from tunegate.edges.model_sources.addressed_model import AddressedModel
from tunegate.edges.model_sources.download_limits import ByteCount
from tunegate.edges.model_sources.model_files import bring_artifact, bring_model, pieces_of
from tunegate.errors import ConfigError


class LocalPath:
    """The files are copied: what is measured is what was pinned, whatever becomes of the path."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def shown(self) -> str:
        return str(self._path)

    def resolve(self) -> str:
        real = self._path.resolve()
        if not real.exists():
            message = (
                f"{self._path}: no such file. Name an ONNX file, a directory with an "
                f"artifact.json, or an address (docs/deploying.md)."
            )
            raise ConfigError(message)
        return "" if real == self._path.absolute() else str(real)

    def download(self, into: Path, count: ByteCount) -> Path:
        real = self._path.resolve()
        if real.is_dir():
            return bring_artifact(into, lambda name: pieces_of(real / name), count)
        return bring_model(real.name, into, lambda name: pieces_of(real.parent / name), count)


_: type[AddressedModel] = LocalPath
