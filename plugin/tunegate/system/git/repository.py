"""An implementation of `ports.Repository` over git: reads any revision, never touches the working
tree."""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache, partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal

from tunegate.artifacts.changes import ModelVersion
from tunegate.errors import ConfigError, ModelError, RevisionError, UnreadModelError
from tunegate.ports import Repository, Trailer, TreeEntry
from tunegate.system.git import checkout, dvc
from tunegate.system.git.content import MAX_DVC_BYTES, copy_content, dvc_command, missing
from tunegate.system.git.events import GitEvents
from tunegate.system.git.process import Bounded
from tunegate.system.onnx_scan import MAX_MODEL_BYTES, data_files, too_large
from tunegate.system.processes.memory_limit import available_bytes

_KINDS: dict[bytes, Literal["file", "link", "submodule"]] = {
    b"120000": "link",
    b"160000": "submodule",
}


MAX_COMMITTED_TEXT_BYTES = 4 * 1024 * 1024
"""The largest text file that is read from a commit."""
_TIMES_IN_MEMORY = 4
"""A model is held as bytes, parsed, and written without its weights. A file of zeros is small in
git."""


def _over(path: str, most_bytes: int) -> ModelError:
    return ModelError(f"{path} has over {most_bytes >> 20} MiB")


class GitRepository(GitEvents):
    """One repository: the revisions to compare, and their contents."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._attributes = cache(self._read_attributes)
        self._broken = cache(checkout.Trees(self._git).problem)
        self._stages = cache(self._read_stages)
        self._dvc_files = cache(self._read_dvc_files)

    def files(self, revision: str) -> Sequence[TreeEntry]:
        """Returns the files of a revision, without sizes: for those git would fetch every blob that
        a blobless clone lacks. Raises RevisionError if a checkout would write the revision
        differently."""
        broken = self._broken(revision)
        if broken:
            message = (
                f"{revision[:12]}: {broken}, so a checkout writes other files than git shows. "
                "`git fsck` calls it broken. Commit the files anew."
            )
            raise RevisionError(message)
        entries = self._git.output("ls-tree", "-r", "-z", "--full-tree", revision)
        if entries is None:
            message = f"{revision}: its files cannot be listed. Fetch the whole commit."
            raise RevisionError(message)
        return tuple(_entry(line) for line in entries.split(b"\0") if line)

    def entry(self, revision: str, path: str) -> TreeEntry | None:
        """Returns the revision's entry at exactly this path, without its content, or None. Raises
        RevisionError."""
        entries = self._git.output("ls-tree", "-z", "--full-tree", revision, "--", path)
        if entries is None:
            raise RevisionError(f"{revision}: it cannot be read. Fetch the whole commit.")
        return next((_entry(line) for line in entries.split(b"\0") if line), None)

    def submodule_above(self, revision: str, path: str) -> str:
        """Returns the revision's submodule above this path, '' without one. Raises
        RevisionError."""
        above = [str(parent) for parent in PurePosixPath(path).parents][:-1]
        entries = (self.entry(revision, each) for each in above)
        return next((entry.path for entry in entries if entry and entry.kind == "submodule"), "")

    def directories(self, revision: str) -> Mapping[str, str]:
        """Returns git's id of each directory, by path: equal ids mean equal contents. The root is
        `.`."""
        entries = self._git.answer("ls-tree", "-r", "-d", "-z", "--full-tree", revision)
        root = self._git.text("rev-parse", "--verify", "-q", f"{revision}^{{tree}}") or ""
        lines = (line.partition(b"\t") for line in entries.split(b"\0") if line)
        trees = {_text(path): meta.split()[2].decode() for meta, _, path in lines}
        return {**trees, ".": root}

    def require_own(self, path: str, subject: str) -> None:
        """Raises ConfigError for a path in a submodule of the checkout, whose commit a change can
        move without showing a line of it."""
        above = checkout.tracked_above(self._git, path)
        if above:
            message = f"{path}: {above} is a submodule. Keep {subject} in this repository."
            raise ConfigError(message)

    def read(self, revision: str, path: str) -> bytes:
        """Returns a text file, such as a configuration or a pointer; never a model."""
        most = MAX_COMMITTED_TEXT_BYTES
        error = RevisionError(f"{path}: over {most >> 20} MiB, which no such file has.")
        content = Bounded(most, error)
        if not self._git.copy("cat-file", "blob", f"{revision}:{path}", into=content):
            raise RevisionError(missing(revision, path))
        return content.getvalue()

    def data(self, revision: str, path: str, most_bytes: int) -> bytes:
        """Returns a file of numbers, through LFS. Raises RevisionError if there is none, and
        ModelError if it is a link, too large, or not hydrated."""
        entry = self.entry(revision, path)
        if entry is None:
            raise RevisionError(f"{path}: not in {revision[:12]}.")
        if entry.kind != "file":
            raise ModelError(f"{path} is a {entry.kind}: commit the file itself")
        version = ModelVersion(
            revision=revision,
            path=path,
            content_digest=entry.blob,
            graph_digest=None,
            storage="git",
            size_bytes=self.sizes([entry.blob]).get(entry.blob, 0),
        )
        if version.size_bytes > most_bytes:
            raise _over(path, most_bytes)
        # A pointer is small, whatever it stands for.
        content = Bounded(most_bytes, _over(path, most_bytes))
        copy_content(self._git, version, content)
        return content.getvalue()

    def trailers(
        self, base: str, head: str, key: str, *, may_fetch: bool = True
    ) -> Sequence[Trailer]:
        return checkout.trailers_between(self._git, base, head, key, may_fetch=may_fetch)

    def sizes(self, blobs: Sequence[str]) -> Mapping[str, int]:
        """Returns the bytes of each of these blobs that is available. A few trees may name one blob
        thousands of times."""
        lines = "".join(f"{blob}\n" for blob in dict.fromkeys(blobs)).encode()
        output = self._git.output("cat-file", "--batch-check", standard_input=lines) or b""
        answers = [line.split() for line in output.decode().splitlines()]
        return {answer[0]: int(answer[2]) for answer in answers if answer[1] == "blob"}

    def content(self, version: ModelVersion) -> bytes:
        """Returns the model's real bytes, through LFS or DVC. Raises ModelError if they are not
        here."""
        if version.size_bytes > MAX_MODEL_BYTES:
            raise ModelError(f"{version.path}: {too_large(version.size_bytes)}.")
        if _TIMES_IN_MEMORY * version.size_bytes > available_bytes():
            problem = (
                f"has {version.size_bytes / 1e9:.1f} GB: there is not the memory to look into it"
            )
            raise ModelError(f"{version.path}: {problem}. Use a larger machine.")
        content = BytesIO()
        self._copy(version, content)
        return content.getvalue()

    def stage_outputs(self, revision: str) -> dvc.StageOutputs:
        """Returns what DVC keeps of this revision beside models with a DVC file of their own."""
        return self._stages(revision)

    def dvc_files(self, revision: str) -> Mapping[str, bytes]:
        """Returns the files of DVC that are no larger than one may be, by path."""
        return self._dvc_files(revision)

    def _read_stages(self, revision: str) -> dvc.StageOutputs:
        paths = [entry.path for entry in self.files(revision) if entry.kind == "file"]
        contents = self.dvc_files(revision)

        def read(path: str) -> bytes | None:
            content = contents.get(path)
            is_large = content is None and not dvc.is_dvc_file(path)
            return self.read(revision, path) if is_large else content

        return dvc.stage_outputs(paths, read, partial(dvc.cached_listing, self._git.root))

    def _read_dvc_files(self, revision: str) -> Mapping[str, bytes]:
        blobs = {
            e.path: e.blob
            for e in self.files(revision)
            if e.kind == "file" and (dvc.is_dvc_file(e.path) or dvc.is_of_pipeline(e.path))
        }
        contents = self.small_blobs(self.sizes([*blobs.values()]) if blobs else {})
        return {path: contents[blob] for path, blob in blobs.items() if blob in contents}

    def small_blobs(
        self, sizes: Mapping[str, int], most_bytes: int = MAX_DVC_BYTES
    ) -> Mapping[str, bytes]:
        """Returns the content of each blob of at most this size, by one process: there may be
        thousands."""
        few = [blob for blob, size_bytes in sizes.items() if size_bytes <= most_bytes]
        if not few:
            return {}
        lines = "".join(f"{blob}\n" for blob in few).encode()
        output = BytesIO(self._git.answer("cat-file", "--batch", standard_input=lines))
        contents: dict[str, bytes] = {}
        for blob in few:
            output.readline()
            contents[blob] = output.read(sizes[blob])
            output.readline()
        return contents

    def _copy(self, version: ModelVersion, into: BinaryIO) -> None:
        outputs = (
            self.stage_outputs(version.revision) if version.storage == "dvc" else dvc.StageOutputs()
        )
        if directory := outputs.unlisted_above(version.path):
            message = (
                f"{version.path} at {version.revision[:12]}: DVC keeps the directory {directory}, "
                f"and its listing is not in the cache. "
                f"Run: {dvc_command(self._git, version, directory)}"
            )
            raise ModelError(message)
        copy_content(self._git, version, into, outputs.files.get(version.path))

    def conversions(self, revision: str, paths: Sequence[str]) -> Mapping[str, str]:
        """Returns, for each path that has one, the attribute that makes a checkout write other
        bytes than were committed."""
        return checkout.conversions(self._attributes(revision), paths) if paths else {}

    def _read_attributes(self, revision: str) -> Mapping[str, bytes]:
        # A checkout reads them from the index, where a link is a file with its target as the text.
        blobs = {
            entry.path: entry.blob
            for entry in self.files(revision)
            if PurePosixPath(entry.path).name == checkout.ATTRIBUTES_FILE
            and entry.kind != "submodule"
            and checkout.is_safe(entry.path)
        }
        contents = self.small_blobs(self.sizes([*blobs.values()]) if blobs else {})
        return {
            path: contents[blob] if blob in contents else self.read(revision, path)
            for path, blob in blobs.items()
        }

    def export_model(self, version: ModelVersion, into: Path) -> Path:
        """Writes the model and its external data as files, laid out as in the repository."""
        model = into / PurePosixPath(version.path).name
        body = self.content(version)
        into.mkdir(parents=True, exist_ok=True)
        model.write_bytes(body)
        targets = {version.path: model}
        for name in self._data_files(version, body):
            target = into / name
            if target == model:
                message = f"{version.path}: its external data file is itself. Export it again."
                raise ModelError(message)
            if target in targets.values():  # in other words, such as ./w.bin
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            data_file = self._data_file(version, name)
            with target.open("x+b") as file:
                self._copy(data_file, file)
            targets[data_file.path] = target
        self._refuse_converted(version.revision, targets)
        return model

    def _refuse_converted(self, revision: str, files: Mapping[str, Path]) -> None:
        for path, attribute in self.conversions(revision, list(files)).items():
            if checkout.changes_bytes(attribute, files[path].read_bytes()):
                file, pattern = checkout.pattern_of(path)
                message = (
                    f"{path}: a checkout does not get the committed bytes "
                    f"({checkout.ATTRIBUTES_FILE}: {attribute}). "
                    f"Add the last line of {file}: {pattern} -text -ident !working-tree-encoding"
                )
                raise ModelError(message)

    def _data_files(self, version: ModelVersion, body: bytes) -> tuple[str, ...]:
        try:
            return data_files(body)
        except UnreadModelError as error:
            raise ModelError(f"{version.path}: {error}.") from error
        except ModelError as error:
            message = f"{version.path}: {error}. Export it again."
            raise ModelError(message) from error

    def _named_twice(
        self, version: ModelVersion, path: str, output: dvc.StageOutput | None
    ) -> ModelVersion:
        """Returns a data file that git has too; one that DVC keeps with the same bytes is git's: a
        stage's `cache: false` means that."""
        in_git = self.entry(version.revision, path)
        if output is not None and in_git is not None and in_git.kind == "file":
            version_in_git = _beside(version, path, "git")
            with tempfile.TemporaryFile() as content:  # a data file may be tens of GB
                self._copy(version_in_git, content)
                content.seek(0)
                digest = hashlib.file_digest(
                    content, partial(hashlib.md5, usedforsecurity=False)
                ).hexdigest()
            if digest == output.digest:
                return version_in_git
        return _beside(version, path, "both")

    def _data_file(self, version: ModelVersion, name: str) -> ModelVersion:
        """Returns an external data file's version, wherever it is stored. Raises ModelError for
        what is no file."""
        path = str(PurePosixPath(version.path).parent / name)
        storages: tuple[tuple[Literal["git", "dvc"], str], ...] = (
            ("git", path),
            ("dvc", f"{path}.dvc"),
        )
        entries = [self.entry(version.revision, place) for _, place in storages]
        output = self.stage_outputs(version.revision).files.get(path)
        if all(entries) or (any(entries) and output is not None):
            return self._named_twice(version, path, output)
        if output is not None:
            return _beside(version, path, "dvc")
        for (storage, place), entry in zip(storages, entries, strict=True):
            if entry is not None and entry.kind == "file":
                return _beside(version, path, storage)
            if entry is not None:
                kind = "submodule" if entry.kind == "submodule" else "symbolic link"
                message = (
                    f"{version.path}: its data file {place} is a {kind} in "
                    f"{version.revision[:12]}, which is not followed. Commit the file itself."
                )
                raise ModelError(message)
        message = (
            f"{version.path}: its data file {path} is not in {version.revision[:12]}. "
            f"Commit it (also when it is stored by LFS or DVC)."
        )
        raise ModelError(message)


def _entry(line: bytes) -> TreeEntry:
    meta, _, path = line.partition(b"\t")
    mode, _, blob = meta.split()
    return TreeEntry(_text(path), blob.decode(), _KINDS.get(mode, "file"))


def _text(path: bytes) -> str:
    """Returns the path as text; bytes that are not UTF-8, which JSON cannot hold, are escaped."""
    return path.decode("utf-8", "backslashreplace")


def _beside(
    version: ModelVersion, path: str, storage: Literal["git", "dvc", "both"]
) -> ModelVersion:
    return ModelVersion(
        revision=version.revision,
        path=path,
        content_digest="",
        graph_digest=None,
        storage=storage,
        size_bytes=0,
    )


_: type[Repository] = GitRepository
