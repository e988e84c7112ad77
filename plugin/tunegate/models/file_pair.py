"""Two ONNX files as the two revisions of one model: a Repository without git."""

import hashlib
import os
import shutil
from collections.abc import Sequence
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

from tunegate.artifacts.changes import ExternalFile, ModelVersion, Revisions
from tunegate.errors import ModelError, RevisionError, UnreadModelError
from tunegate.ports import Repository, Trailer, TreeEntry
from tunegate.regular_files import opened_inside
from tunegate.system.onnx_scan import MAX_MODEL_BYTES, data_files, too_large

TWO_FILES = Revisions(base="base", head="head", reason="two files")


class FilePair:
    """Two files, named after these revisions."""

    def __init__(self, base: Path, head: Path, revisions: Revisions = TWO_FILES) -> None:
        """Raises ModelError if a file does not exist."""
        self._revisions = revisions
        self._files = {revisions.base or "": base, revisions.head: head}
        for file in self._files.values():
            if not file.is_file():
                raise ModelError(f"{file}: no such file. Name two ONNX files.")
            if file.stat().st_size > MAX_MODEL_BYTES:
                raise ModelError(f"{file}: {too_large(file.stat().st_size)}.")

    def are_same(self) -> bool:
        """Returns whether both are one model, including all data files. Raises ModelError if a file
        is no model."""
        return len({self._digest(file) for file in self._files.values()}) == 1

    def revisions(self, base: str | None, head: str | None) -> Revisions:
        return self._revisions

    def files(self, revision: str) -> Sequence[TreeEntry]:
        file = self._files[revision]
        return (TreeEntry(file.name, ""),)

    def read(self, revision: str, path: str) -> bytes:
        with _open(self._files[revision], path) as file:
            return file.read()

    def data(self, revision: str, path: str, most_bytes: int) -> bytes:
        beside = self._files[revision]
        if not os.path.lexists(beside.parent / path):
            raise RevisionError(f"{beside.parent / path}: no such file.")
        with _open(beside, path) as file:
            content = file.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise ModelError(f"{beside.parent / path} has over {most_bytes >> 20} MiB")
        return content

    def trailers(
        self, base: str, head: str, key: str, *, may_fetch: bool = True
    ) -> Sequence[Trailer]:
        """Returns nothing: files have no commit messages."""
        return ()

    def version(self, revision: str, path: str) -> ModelVersion:
        """Returns the file as a version of the model called `path` in the report."""
        file = self._files[revision]
        body = file.read_bytes()
        try:
            data = tuple(
                ExternalFile(name, data_digest(file, name)) for name in self._data_files(file)
            )
        except ModelError:
            data = ()  # opening it reports the problem
        return ModelVersion(
            revision=revision,
            path=path,
            content_digest=hashlib.sha256(body).hexdigest(),
            graph_digest=None,
            storage="git",
            size_bytes=len(body),
            external=data,
        )

    def export_model(self, version: ModelVersion, into: Path) -> Path:
        file = self._files[version.revision]
        into.mkdir(parents=True, exist_ok=True)
        copy = Path(shutil.copy(file, into / file.name))
        for target in dict.fromkeys(into / name for name in self._data_files(file)):
            if target == copy:
                raise ModelError(f"{file}: its external data file is itself. Export it again.")
            target.parent.mkdir(parents=True, exist_ok=True)
            with _open(file, str(target.relative_to(into))) as data, target.open("xb") as into_file:
                shutil.copyfileobj(data, into_file)
        return copy

    def _digest(self, file: Path) -> str:
        body = hashlib.sha256(file.read_bytes()).hexdigest()
        digests = (body, *(data_digest(file, name) for name in self._data_files(file)))
        return hashlib.sha256("".join(digests).encode()).hexdigest()

    def _data_files(self, file: Path) -> tuple[str, ...]:
        try:
            return data_files(file.read_bytes())
        except UnreadModelError as error:
            raise ModelError(f"{file}: {error}.") from error
        except ModelError as error:
            raise ModelError(f"{file}: {error}. Export it again.") from error


def _open(model: Path, name: str) -> BinaryIO:
    """Opens a file beside the model, by the rules of a revision. Raises ModelError if it is missing
    or a link, whose target would end up in what is uploaded."""
    opened_file = opened_inside(model.parent, name)
    if opened_file is None:
        file = model.parent / name
        if not os.path.lexists(file):
            raise ModelError(f"{file}: no such file. It is data of {model.name}.")
        message = (
            f"{file}: no plain file, or behind a symbolic link, which is not followed. It is data "
            f"of {model.name}: put the file itself there."
        )
        raise ModelError(message)
    return opened_file


def data_digest(model: Path, name: str) -> str:
    """Returns the SHA-256 of a data file beside a model. Raises ModelError unless it is a plain
    file."""
    with _open(model, name) as content:
        return hashlib.file_digest(cast("BufferedReader", content), "sha256").hexdigest()


_: type[Repository] = FilePair
