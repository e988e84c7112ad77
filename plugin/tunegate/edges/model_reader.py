"""ports.ModelReader over a git repository: models in git, in Git LFS, in DVC, with data files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

import msgspec

from tunegate.artifacts.changes import ExternalFile, ModelPath, ModelVersion
from tunegate.edges.git import GitRepository
from tunegate.edges.onnx_graph import external_files, graph_digest
from tunegate.edges.pointers import dvc_output, lfs_pointer
from tunegate.errors import ModelError, RevisionError
from tunegate.ports import ModelReader, TreeEntry

_MODEL = ".onnx"
_DVC = ".onnx.dvc"
_LARGEST_POINTER_BYTES = 1024


class GitModelReader:
    """Looks at names and pointers first; bytes are read only when a model is opened."""

    def __init__(self, repository: GitRepository) -> None:
        self._repository = repository

    def models(self, revision: str) -> Mapping[ModelPath, ModelVersion]:
        entries = {entry.path: entry for entry in self._repository.files(revision)}
        found: dict[ModelPath, ModelVersion] = {}
        for path, entry in entries.items():
            if path.endswith(_MODEL):
                found[path] = self._stored(revision, entry, entries)
            elif path.endswith(_DVC):
                version = self._tracked(revision, entry)
                if version is not None:
                    found[version.path] = version
        return found

    def opened(self, version: ModelVersion) -> tuple[ModelVersion, str]:
        """The version with its graph digest; without one, and why, where it cannot be read."""
        try:
            digest = graph_digest(self._repository.content(version))
        except (ModelError, RevisionError) as error:
            return version, str(error)
        return msgspec.structs.replace(version, graph_digest=digest), ""

    def _stored(
        self, revision: str, entry: TreeEntry, entries: Mapping[str, TreeEntry]
    ) -> ModelVersion:
        if entry.size_bytes <= _LARGEST_POINTER_BYTES:
            pointer = lfs_pointer(self._repository.read(revision, entry.path))
            if pointer is not None:
                return ModelVersion(
                    revision=revision,
                    path=entry.path,
                    content_digest=pointer.digest,
                    graph_digest=None,
                    storage="lfs",
                    size_bytes=pointer.size_bytes,
                )
        return ModelVersion(
            revision=revision,
            path=entry.path,
            content_digest=f"git:{entry.blob}",
            graph_digest=None,
            storage="git",
            size_bytes=entry.size_bytes,
            external=self._external(revision, entry, entries),
        )

    def _external(
        self, revision: str, entry: TreeEntry, entries: Mapping[str, TreeEntry]
    ) -> tuple[ExternalFile, ...]:
        """The data files the model names. Only asked where files lie beside it that could be some."""
        directory = PurePosixPath(entry.path).parent
        beside = [
            path
            for path in entries
            if not path.endswith((_MODEL, ".dvc")) and directory in PurePosixPath(path).parents
        ]
        if not beside:
            return ()
        try:
            names = external_files(self._repository.read(revision, entry.path))
        except (ModelError, RevisionError):
            return ()  # opened, this model will say what is wrong with it
        paths = [str(directory / name) for name in names]
        return tuple(
            ExternalFile(path, self._digest(revision, entries[path]))
            for path in paths
            if path in entries
        )

    def _digest(self, revision: str, entry: TreeEntry) -> str:
        if entry.size_bytes <= _LARGEST_POINTER_BYTES:
            pointer = lfs_pointer(self._repository.read(revision, entry.path))
            if pointer is not None:
                return pointer.digest
        return f"git:{entry.blob}"

    def _tracked(self, revision: str, entry: TreeEntry) -> ModelVersion | None:
        output = dvc_output(self._repository.read(revision, entry.path))
        if output is None:
            return None
        name, pointer = output
        return ModelVersion(
            revision=revision,
            path=str(PurePosixPath(entry.path).parent / name),
            content_digest=f"md5:{pointer.digest}",
            graph_digest=None,
            storage="dvc",
            size_bytes=pointer.size_bytes,
        )


_: type[ModelReader] = GitModelReader
