"""The cells of a study on disk, one file each: what is finished stays finished."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from tunegate.artifacts import artifact_io
from tunegate.artifacts.artifact_io import digest_of_document, document_of
from tunegate.config import InputConfig, TargetConfig
from tunegate.errors import ArtifactError, ConfigError, ModelError
from tunegate.system.onnx_scan import data_files
from tunegate_study.design.measured import VARIANT
from tunegate_study.design.study_config import StudiedModel
from tunegate_study.studies import CellSetting, KeptCell, StudyCell


class KeptCells:
    """The files of a directory. Each write replaces a whole file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def of(self, key: str) -> StudyCell | None:
        """Returns the cell, None if it is missing or unreadable: then it is made again."""
        try:
            return artifact_io.read(self._file(key), KeptCell).cell
        except ArtifactError:
            return None

    def keep(self, cell: StudyCell) -> None:
        """Saves a cell. Raises OutputError."""
        artifact_io.write(self._file(cell.key), KeptCell(cell=cell))

    def _file(self, key: str) -> Path:
        return self._directory / f"{key}.json"


def cell_key(setting: CellSetting, model: StudiedModel, target: TargetConfig) -> str:
    """Returns the digest of the model's bytes, with all that they name, and of the cell's
    settings."""
    asked = {
        "levels": setting,
        "target": document_of(target),
        "dims": dict(model.dims),
        "inputs": {name: _document(given) for name, given in model.inputs.items()},
        "bytes": model_digest(Path(model.files[setting[VARIANT]]), _value_files(model)),
    }
    return digest_of_document(asked)


def model_digest(file: Path, beside: Iterable[str] = ()) -> str:
    """Returns the digest of a model's file and of the files beside it. Raises ConfigError."""
    try:
        body = file.read_bytes()
        names = (*data_files(body), *beside)
        parts = [body, *((file.parent / name).read_bytes() for name in names)]
    except (OSError, ModelError) as error:
        raise ConfigError(f"{file}: cannot be read ({error}). Export it again.") from error
    digests = "".join(hashlib.sha256(part).hexdigest() for part in parts)
    return hashlib.sha256(digests.encode()).hexdigest()


def folder_name(text: str) -> str:
    """Returns a name that any file system accepts."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("._") or "model"


def _value_files(model: StudiedModel) -> list[str]:
    return [
        file
        for given in model.inputs.values()
        if isinstance(given, InputConfig) and given.values is not None
        for file in given.values.files
        if file
    ]


def _document(value: object) -> object:
    return document_of(value) if isinstance(value, InputConfig) else value
