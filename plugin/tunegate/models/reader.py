"""An implementation of `ports.ModelReader` over a git repository: models in git, Git LFS or DVC,
with data files."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from tunegate.artifacts.changes import ExternalFile, ModelOutline, ModelPath, ModelVersion
from tunegate.errors import ModelError, NoOnnxError, RevisionError
from tunegate.models.graph import graph_digest, outline_of
from tunegate.ports import ModelReader, TreeEntry
from tunegate.system.git import dvc
from tunegate.system.git.checkout import ATTRIBUTES_FILE
from tunegate.system.git.content import MAX_POINTER_BYTES, dvc_pointer, lfs_pointer
from tunegate.system.git.repository import GitRepository
from tunegate.system.onnx_scan import data_files

_MODEL = ".onnx"
_DVC = ".dvc"
_Storage = Literal["git", "lfs", "dvc", "link"]
_LOCATION = b"location"
"""The bytes in a model before the location of every external tensor."""


class GitModelReader:
    """Looks at names and pointers first; a model's bytes are read only when it is opened.

    Only the model itself names its data files. Until it is opened, `external` is git's id of its
    directory, with everything below: a change there means it must be opened.
    """

    def __init__(self, repository: GitRepository) -> None:
        self._repository = repository
        self._files = cache(self._list_files)
        self._attributes = cache(self._list_attributes)
        self._stages = cache(self._read_stages)
        self._directories = cache(repository.directories)
        self._odd_entries = cache(self._list_odd_entries)
        self._named: dict[str, tuple[str, ...]] = {}
        self._outlines: dict[str, ModelOutline | None] = {}
        self._refused: dict[str, ModelError] = {}
        self._md5s: dict[str, str] = {}

    def models(self, revision: str) -> Mapping[ModelPath, ModelVersion]:
        entries = [e for e in self._files(revision).values() if e.kind != "submodule"]
        stored = [entry for entry in entries if entry.path.casefold().endswith(_MODEL)]
        tracked = [entry for entry in entries if entry.path.casefold().endswith(_MODEL + _DVC)]
        sizes = self._repository.sizes([entry.blob for entry in stored])
        texts = self._repository.small_blobs(sizes, MAX_POINTER_BYTES)
        self._stages(revision)  # raises for more YAML than can be read
        dvc_files = self._repository.dvc_files(revision) if tracked else {}
        versions = [
            *(_tracked_version(revision, e, dvc_files.get(e.path, b"")) for e in tracked),
            *(
                _stored_version(revision, e, sizes.get(e.blob, 0), texts.get(e.blob, b""))
                for e in stored
            ),
        ]
        versions += self._outputs(revision, versions)
        trees = self._directories(revision) if versions else {}
        beside = cache(partial(_digest_kept, self._stages(revision)))
        by_path = {
            version.path: _beside(version, trees, beside) for version in _each_once(versions)
        }
        return self._add_attributes(revision, by_path)

    def with_data_files(self, version: ModelVersion) -> tuple[ModelVersion, str]:
        """Returns the version with its data files; unchanged, and the reason, if it cannot be
        read."""
        try:
            return self._add_data_files(version, self._names(version)), ""
        except (ModelError, RevisionError) as error:
            return version, str(error)

    def with_digest(self, version: ModelVersion) -> tuple[ModelVersion, str]:
        """Returns the version with its graph digest and data files; unchanged, and the reason, if
        it cannot be read."""
        try:
            content, names = self._scan(version)
            version_with_data = self._add_data_files(version, names)
            blobs = {
                name: each.digest
                for name, each in zip(names, version_with_data.external, strict=True)
            }
            digest = graph_digest(content, blobs)
        except NoOnnxError as error:
            return msgspec.structs.replace(version, graph_digest=""), str(error)
        except (ModelError, RevisionError) as error:
            return version, str(error)
        return msgspec.structs.replace(version_with_data, graph_digest=digest), ""

    def outline(self, version: ModelVersion) -> ModelOutline | None:
        """Returns the outline; equal contents are read once, whatever their revisions."""
        key = version.content_digest
        if key not in self._outlines:
            self._outlines[key] = self._outline(version)
        return self._outlines[key]

    def blob(self, revision: str, path: str) -> str:
        entry = self._files(revision).get(path)
        return "" if entry is None else entry.blob

    def submodules(self, revision: str) -> Mapping[str, str]:
        odd = self._odd_entries(revision).values()
        return {entry.path: entry.blob for entry in odd if entry.kind == "submodule"}

    def obstacle(self, revision: str, path: ModelPath) -> str:
        odd = self._odd_entries(revision)
        for each in (path, *map(str, PurePosixPath(path).parents)):
            if each in odd:
                what = "submodule" if odd[each].kind == "submodule" else "symbolic link"
                return f"{each} is a {what}"
        return f"{path} is a directory" if path in self._directories(revision) else ""

    def earlier(self, version: ModelVersion) -> tuple[ModelVersion, int] | None:
        """Returns the version before and its age in commits, None if the file is new or the history
        here is too short."""
        paths = (version.path, version.path + _DVC)
        last_change = self._repository.before_last_change(version.revision, *paths)
        if last_change is None:
            return None
        commit, commits = last_change
        model = self.models(commit).get(version.path)
        return None if model is None else (self.with_digest(model)[0], commits)

    def _outline(self, version: ModelVersion) -> ModelOutline | None:
        try:
            return outline_of(self._scan(version)[0])
        except (ModelError, RevisionError):
            return None

    def unread_outputs(self, base: str | None, head: str) -> Mapping[str, str]:
        """Returns the outputs that DVC pointers name; only pointers that differ are read."""
        old = {} if base is None else self._files(base)
        new = self._files(head)
        changed = {path for path, each in new.items() if path not in old or old[path] != each}
        stages = self._stages(head)
        before = dvc.StageOutputs() if base is None else self._stages(base)
        problems = {
            path: "a directory that DVC keeps, whose listing is not in the cache"
            for path, digest in stages.directories.items()
            if before.directories.get(path) != digest
        }
        problems |= {
            place: why
            for place, why in stages.unread.items()
            if place.partition(": ")[0] in changed or before.unread.get(place) != why
        }
        return problems

    def _outputs(self, revision: str, versions: Sequence[ModelVersion]) -> Iterator[ModelVersion]:
        """Yields the models that DVC keeps without a DVC file of their own.
        One that is also committed with the same bytes is the committed one: a stage's `cache:
        false` means that."""
        version_at = {other.path: other for other in versions}
        for path, output in self._stages(revision).files.items():
            if not path.casefold().endswith(_MODEL):
                continue
            if (other := version_at.get(path)) is not None and self._is_equal(other, output.digest):
                continue
            yield _version(revision, path, "dvc", f"md5:{output.digest}", output.size_bytes)

    def unlisted_version(self, revision: str, path: ModelPath) -> ModelVersion | None:
        stages = self._stages(revision)
        directory = stages.unlisted_above(path)
        if not directory:
            return None
        return _version(revision, path, "dvc", f"md5:{stages.directories[directory]}/{path}")

    def _read_stages(self, revision: str) -> dvc.StageOutputs:
        """Returns what DVC keeps, looked up only if a file says that it keeps something."""
        has_some = any(dvc.is_lock(path) or dvc.is_dvc_file(path) for path in self._files(revision))
        return self._repository.stage_outputs(revision) if has_some else dvc.StageOutputs()

    def _is_equal(self, version: ModelVersion, md5: str) -> bool:
        if version.storage == "dvc":  # its content would be read by the digest that it is asked for
            return version.content_digest == f"md5:{md5}"
        key = version.content_digest
        if key not in self._md5s:
            self._md5s[key] = ""
            with suppress(ModelError, RevisionError):
                content = self._repository.content(version)
                self._md5s[key] = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return self._md5s[key] == md5

    def _list_files(self, revision: str) -> Mapping[str, TreeEntry]:
        files: dict[str, TreeEntry] = {}
        for entry in self._repository.files(revision):
            # What is not UTF-8 comes escaped, so that two files may have one name.
            other = files.get(entry.path)
            blobs = entry.blob if other is None else f"{other.blob}+{entry.blob}"
            files[entry.path] = TreeEntry(entry.path, blobs, entry.kind)
        return files

    def _list_odd_entries(self, revision: str) -> Mapping[str, TreeEntry]:
        files = self._files(revision).items()
        return {path: entry for path, entry in files if entry.kind != "file"}

    def _scan(self, version: ModelVersion) -> tuple[bytes, tuple[str, ...]]:
        """Returns the content and its data files. Rejected content is read once: that may be
        expensive."""
        key = version.content_digest
        if key in self._refused:
            raise self._refused[key]
        content = self._repository.content(version)
        try:
            return content, data_files(content)
        except ModelError as error:
            self._refused[key] = error
            raise

    def _names(self, version: ModelVersion) -> tuple[str, ...]:
        """Returns the names of the version's data files; equal contents are read once, whatever
        their revisions."""
        key = version.content_digest
        if key not in self._named:
            content = self._repository.content(version)
            self._named[key] = data_files(content) if _LOCATION in content else ()
        return self._named[key]

    def _add_data_files(self, version: ModelVersion, names: Sequence[str]) -> ModelVersion:
        directory = PurePosixPath(version.path).parent
        files = self._files(version.revision)
        paths = [str(directory / name) for name in names]
        converted = self._conversions(version.revision, paths)
        stage_files = self._stages(version.revision).files
        external = [
            _external(path, files, converted.get(path, ""), stage_files.get(path)) for path in paths
        ]
        return msgspec.structs.replace(version, external=tuple(external))

    def _list_attributes(self, revision: str) -> Mapping[str, TreeEntry]:
        files = self._files(revision).items()
        return {path: entry for path, entry in files if path.rpartition("/")[2] == ATTRIBUTES_FILE}

    def _conversions(self, revision: str, paths: Sequence[str]) -> Mapping[str, str]:
        has_any = bool(self._attributes(revision))
        return self._repository.conversions(revision, paths) if has_any else {}

    def _add_attributes(
        self, revision: str, versions: dict[ModelPath, ModelVersion]
    ) -> dict[ModelPath, ModelVersion]:
        """Adds git attributes to the content, also those above the models' directories."""
        attributes = self._attributes(revision)
        converted = self._conversions(revision, list(versions))
        return {
            path: msgspec.structs.replace(
                version,
                content_digest=f"{version.content_digest} {converted.get(path, '')}".strip(),
                external=_attributes_of(version, attributes),
            )
            for path, version in versions.items()
        }


def _stored_version(revision: str, entry: TreeEntry, size_bytes: int, text: bytes) -> ModelVersion:
    """Returns the version of a stored file, which may be a pointer by its `text`. Opening it
    reports a blob that cannot be read, or a name that no path can have."""
    if entry.kind == "link":  # it may point anywhere, and is not followed
        return _version(revision, entry.path, "link", f"git:{entry.blob}")
    pointer = lfs_pointer(text)
    if pointer is None:
        return _version(revision, entry.path, "git", f"git:{entry.blob}", size_bytes)
    # Git LFS gives nothing for a digest with another size.
    digest = f"{pointer.digest} {pointer.size_bytes}"
    return _version(revision, entry.path, "lfs", digest, pointer.size_bytes)


def _tracked_version(revision: str, entry: TreeEntry, text: bytes) -> ModelVersion:
    """Returns the version of a DVC-tracked model. Even an empty .dvc file stands for it; opening
    reports what is wrong."""
    path = entry.path[: -len(_DVC)]
    try:
        pointer = dvc_pointer(text, path)
    except ModelError:
        return _version(revision, path, "dvc", f"git:{entry.blob}")
    return _version(revision, path, "dvc", f"md5:{pointer.digest}", pointer.size_bytes)


def _version(
    revision: str, path: ModelPath, storage: _Storage, digest: str, size_bytes: int | None = 0
) -> ModelVersion:
    """Returns a version that is not opened yet."""
    return ModelVersion(
        revision=revision,
        path=path,
        content_digest=digest,
        graph_digest=None,
        storage=storage,
        size_bytes=size_bytes or 0,
    )


def _beside(
    version: ModelVersion, trees: Mapping[str, str], kept_digest: Callable[[str], str]
) -> ModelVersion:
    directory = str(PurePosixPath(version.path).parent)
    tree = f"tree:{trees.get(directory, version.revision)} {kept_digest(directory)}".strip()
    return msgspec.structs.replace(version, external=(ExternalFile(directory, tree),))


def _digest_kept(stages: dvc.StageOutputs, directory: str) -> str:
    """Returns a digest of all that DVC keeps in a directory; '' where that is nothing. It is named
    elsewhere, so git's id of the directory does not tell its changes."""
    start = "" if directory == "." else f"{directory}/"
    digests = {**stages.directories, **{path: out.digest for path, out in stages.files.items()}}
    lines = [f"{path} {digests[path]}" for path in sorted(digests) if path.startswith(start)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest() if lines else ""


def _each_once(versions: Sequence[ModelVersion]) -> Sequence[ModelVersion]:
    """Merges versions of one path: a path in git and in a DVC file has content of both kinds."""
    by_path: dict[ModelPath, ModelVersion] = {}
    for version in versions:
        other = by_path.get(version.path)
        if other is not None:
            digests = f"{other.content_digest}+{version.content_digest}"
            version = msgspec.structs.replace(version, storage="both", content_digest=digests)  # noqa: PLW2901
        by_path[version.path] = version
    return tuple(by_path.values())


def _attributes_of(
    version: ModelVersion, attributes: Mapping[str, TreeEntry]
) -> tuple[ExternalFile, ...]:
    parents = PurePosixPath(version.path).parents
    above = (str(parent / ATTRIBUTES_FILE) for parent in parents)
    blobs = [attributes[path].blob for path in above if path in attributes]
    (beside,) = version.external
    return (ExternalFile(beside.path, " ".join([beside.digest, *blobs])),)


def _external(
    path: str, files: Mapping[str, TreeEntry], attribute: str, output: dvc.StageOutput | None
) -> ExternalFile:
    """Returns the external file. A DVC file's blob or an LFS pointer changes whenever its content
    does."""
    entries = [entry for entry in (files.get(path), files.get(path + _DVC)) if entry is not None]
    contents = [
        f"{'git' if entry.kind == 'file' else entry.kind}:{entry.blob}" for entry in entries
    ]
    contents += [] if output is None else [f"md5:{output.digest}"]
    return ExternalFile(path, f"{'+'.join(contents) or 'git:missing'} {attribute}".strip())


_: type[ModelReader] = GitModelReader
