"""Two ONNX files as the two revisions of one model: a Repository without git."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from tunegate.artifacts.changes import ModelVersion, Revisions
from tunegate.errors import ModelError, RevisionError
from tunegate.ports import Repository, Trailer, TreeEntry
from tunegate.system.onnx_scan import MAX_MODEL_BYTES, data_files, too_large

TWO_FILES = Revisions(base="base", head="head", reason="two files")


class FilePair:
    """Two files, by the names that these revisions have."""

    def __init__(self, base: Path, head: Path, revisions: Revisions = TWO_FILES) -> None:
        """Raises ModelError for a file that is not there."""
        self._revisions = revisions
        self._files = {revisions.base or "": base, revisions.head: head}
        for file in self._files.values():
            if not file.is_file():
                message = f"{file}: no such file. Name two ONNX files."
                raise ModelError(message)
            if file.stat().st_size > MAX_MODEL_BYTES:
                raise ModelError(f"{file}: {too_large(file.stat().st_size)}.")

    def are_same(self) -> bool:
        """Returns whether both are one model, down to the last file of data. Raises ModelError for
        a file that is no model."""
        return len({self._digest(file) for file in self._files.values()}) == 1

    def revisions(self, base: str | None, head: str | None) -> Revisions:
        return self._revisions

    def files(self, revision: str) -> Sequence[TreeEntry]:
        file = self._files[revision]
        return (TreeEntry(file.name, ""),)

    def read(self, revision: str, path: str) -> bytes:
        return (self._files[revision].parent / path).read_bytes()

    def data(self, revision: str, path: str, most_bytes: int) -> bytes:
        file = self._files[revision].parent / path
        if not file.is_file():
            raise RevisionError(f"{file}: no such file.")
        if file.stat().st_size > most_bytes:
            raise ModelError(f"{file} has over {most_bytes >> 20} MiB")
        return file.read_bytes()

    def trailers(
        self, base: str, head: str, key: str, *, may_fetch: bool = True
    ) -> Sequence[Trailer]:
        """Files have no messages."""
        return ()

    def version(self, revision: str, path: str) -> ModelVersion:
        """The file as a version of the model that the report calls `path`."""
        body = self._files[revision].read_bytes()
        return ModelVersion(
            revision=revision,
            path=path,
            content_digest=hashlib.sha256(body).hexdigest(),
            graph_digest=None,
            storage="git",
            size_bytes=len(body),
        )

    def export_model(self, version: ModelVersion, into: Path) -> Path:
        file = self._files[version.revision]
        into.mkdir(parents=True, exist_ok=True)
        copy = Path(shutil.copy(file, into / file.name))
        for name in self._data_files(file):
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file.parent / name, into / name)
        return copy

    def _digest(self, file: Path) -> str:
        read = hashlib.sha256()
        for each in (file, *(file.parent / name for name in self._data_files(file))):
            if not each.is_file():
                raise ModelError(f"{each}: no such file. It is data of {file.name}.")
            with each.open("rb") as content:
                read.update(hashlib.file_digest(content, "sha256").digest())
        return read.hexdigest()

    def _data_files(self, file: Path) -> tuple[str, ...]:
        try:
            return data_files(file.read_bytes())
        except ModelError as error:
            message = f"{file}: {error}. Export it again."
            raise ModelError(message) from error


_: type[Repository] = FilePair
