"""ports.ModelReader over a git repository: models in git, in Git LFS, in DVC, with data files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import PurePosixPath

import msgspec

from tunegate.artifacts.changes import ExternalFile, ModelPath, ModelVersion
from tunegate.artifacts.outlines import ModelOutline
from tunegate.edges.git import GitRepository
from tunegate.edges.onnx_graph import external_files, graph_digest
from tunegate.edges.onnx_outline import outline_of
from tunegate.edges.pointers import LARGEST_POINTER_BYTES, dvc_output, lfs_pointer
from tunegate.errors import ModelError, RevisionError
from tunegate.ports import ModelReader, TreeEntry

_MODEL = ".onnx"
_DVC = ".dvc"
_NO_DATA = (_MODEL, ".onnx.dvc", ".md", ".rst", ".py", ".yaml", ".yml", ".ipynb")
"""Nobody keeps a model's tensors in files with such names."""


class GitModelReader:
    """Looks at names and pointers first; bytes are read only when a model is opened.

    Which data files a model has is written in it. Until it is opened, `external` is one digest of
    everything beside it that may be its data: a change there means that it has to be opened.
    """

    def __init__(self, repository: GitRepository) -> None:
        self._repository = repository
        self._files = cache(repository.files)

    def models(self, revision: str) -> Mapping[ModelPath, ModelVersion]:
        entries = [entry for entry in self._files(revision) if entry.kind != "submodule"]
        stored = [entry for entry in entries if entry.path.casefold().endswith(_MODEL)]
        sizes = self._repository.sizes([entry.blob for entry in stored])
        tracked = [entry for entry in entries if entry.path.casefold().endswith(_MODEL + _DVC)]
        versions = [
            *(self._tracked(revision, entry) for entry in tracked),
            *(self._stored(revision, entry, sizes.get(entry.blob)) for entry in stored),
        ]
        beside = _Beside(entries)
        return {
            version.path: msgspec.structs.replace(version, external=beside.of(version.path))
            for version in versions
        }

    def opened(self, version: ModelVersion) -> tuple[ModelVersion, str]:
        """The version with its graph digest and its data files; without them, and why, where it
        cannot be read."""
        try:
            content = self._repository.content(version)
            digest, names = graph_digest(content), external_files(content)
        except (ModelError, RevisionError) as error:
            return version, str(error)
        external = self._external(version, names)
        return msgspec.structs.replace(version, graph_digest=digest, external=external), ""

    def outline(self, version: ModelVersion) -> ModelOutline | None:
        try:
            return outline_of(self._repository.content(version))
        except (ModelError, RevisionError):
            return None

    def obstacle(self, revision: str, path: ModelPath) -> str:
        entries = self._files(revision)
        odd = {entry.path: entry.kind for entry in entries if entry.kind != "file"}
        for each in (path, *map(str, PurePosixPath(path).parents)):
            if each in odd:
                return f"{each} is a {'submodule' if odd[each] == 'submodule' else 'symbolic link'}"
        is_directory = any(entry.path.startswith(f"{path}/") for entry in entries)
        return f"{path} is a directory" if is_directory else ""

    def earlier(self, version: ModelVersion) -> tuple[ModelVersion, int] | None:
        """None where the file is new, or the history here does not reach further back."""
        paths = (version.path, version.path + _DVC)
        found = self._repository.before_last_change(version.revision, *paths)
        if found is None:
            return None
        commit, commits = found
        model = self.models(commit).get(version.path)
        return None if model is None else (self.opened(model)[0], commits)

    def _stored(self, revision: str, entry: TreeEntry, size_bytes: int | None) -> ModelVersion:
        """Of unknown size is a blob that cannot be fetched: opening it will say so."""
        if entry.kind == "link":
            return _linked(revision, entry)
        is_small = size_bytes is not None and size_bytes <= LARGEST_POINTER_BYTES
        pointer = lfs_pointer(self._repository.read(revision, entry.path)) if is_small else None
        return ModelVersion(
            revision=revision,
            path=entry.path,
            content_digest=f"git:{entry.blob}" if pointer is None else pointer.digest,
            graph_digest=None,
            storage="git" if pointer is None else "lfs",
            size_bytes=(size_bytes or 0) if pointer is None else pointer.size_bytes,
        )

    def _tracked(self, revision: str, entry: TreeEntry) -> ModelVersion:
        """A .dvc file that says nothing still stands for its model: opening it tells what is wrong."""
        try:
            output = dvc_output(self._repository.read(revision, entry.path))
        except RevisionError:
            output = None
        return ModelVersion(
            revision=revision,
            path=entry.path[: -len(_DVC)],
            content_digest=f"git:{entry.blob}" if output is None else f"md5:{output[1].digest}",
            graph_digest=None,
            storage="dvc",
            size_bytes=0 if output is None else output[1].size_bytes,
        )

    def _external(self, version: ModelVersion, names: Sequence[str]) -> tuple[ExternalFile, ...]:
        """A DVC file's blob or an LFS pointer's changes whenever what it stands for does."""
        if not names:
            return ()
        blobs = {entry.path: entry.blob for entry in self._files(version.revision)}
        directory = PurePosixPath(version.path).parent
        paths = [str(directory / name) for name in sorted(names)]
        return tuple(
            ExternalFile(path, f"git:{blobs.get(path) or blobs.get(path + _DVC, 'missing')}")
            for path in paths
        )


def _linked(revision: str, entry: TreeEntry) -> ModelVersion:
    """A symbolic link in a model's place. It may point anywhere, and is not followed."""
    return ModelVersion(
        revision=revision,
        path=entry.path,
        content_digest=f"git:{entry.blob}",
        graph_digest=None,
        storage="link",
        size_bytes=0,
    )


class _Beside:
    """What lies in a directory and below it, as one digest, made once for all models there."""

    def __init__(self, entries: Sequence[TreeEntry]) -> None:
        self._candidates = [
            (PurePosixPath(entry.path), entry.blob)
            for entry in entries
            if not entry.path.endswith(_NO_DATA) and PurePosixPath(entry.path).name[0] != "."
        ]
        self.of_directory = cache(self._of_directory)

    def of(self, path: ModelPath) -> tuple[ExternalFile, ...]:
        return self.of_directory(PurePosixPath(path).parent)

    def _of_directory(self, directory: PurePosixPath) -> tuple[ExternalFile, ...]:
        inside = [
            f"{path.relative_to(directory)}\0{blob}\0"
            for path, blob in self._candidates
            if directory in path.parents
        ]
        if not inside:
            return ()
        digest = hashlib.sha256("".join(inside).encode()).hexdigest()
        return (ExternalFile(str(directory), f"beside:{digest}"),)


_: type[ModelReader] = GitModelReader
