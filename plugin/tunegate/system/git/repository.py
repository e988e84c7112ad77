"""An implementation of `ports.Repository` over git: reads any revision, never touches the working
tree."""

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from functools import cache, partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal

from tunegate.artifacts.changes import ModelVersion
from tunegate.errors import ConfigError, ModelError, RevisionError, UnreadModelError
from tunegate.ports import Repository, Trailer, TreeEntry
from tunegate.system.git import checkout, dvc
from tunegate.system.git.content import (
    MAX_DVC_BYTES,
    MAX_POINTER_BYTES,
    NewFile,
    copy_content,
    dvc_command,
    missing,
    replace_pointer,
    write_blobs,
)
from tunegate.system.git.events import GitEvents
from tunegate.system.git.fetch import as_lines, fetch_blobs
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
        self._entries = cache(self._read_entries)
        self._stages = cache(self._read_stages)
        self._dvc_files = cache(self._read_dvc_files)

    def files(self, revision: str) -> Sequence[TreeEntry]:
        """Returns the files of a revision, without sizes: for those git would fetch every blob that
        a blobless clone lacks. Raises RevisionError if a checkout would write the revision
        differently."""
        return tuple(self._entries(revision).values())

    def _read_entries(self, revision: str) -> Mapping[bytes, TreeEntry]:
        """Returns the entries by their names in git: as text, where bytes that are not UTF-8 are
        escaped, two names may be one."""
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
        lines = filter(None, entries.split(b"\0"))
        return {line.partition(b"\t")[2]: _entry(line) for line in lines}

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
        once = dict.fromkeys(blobs)
        fetch_blobs(self._git, once)
        look = ("cat-file", "--batch-check")
        output = self._git.output(*look, standard_input=as_lines(once)) or b""
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
        dvc_source: dvc.StageOutput | bytes | None = outputs.files.get(version.path)
        # An escaped name may be that of two files.
        if version.storage == "dvc" and dvc_source is None and "\\x" not in version.path:
            dvc_source = self.dvc_files(version.revision).get(f"{version.path}.dvc")
        copy_content(self._git, version, into, dvc_source)

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
        beside = PurePosixPath(version.path).parent
        # One file may be named in several words, such as ./w.bin.
        files = {str(beside / name): into / name for name in self._data_files(version, body)}
        if version.path in files:
            message = f"{version.path}: its external data file is itself. Export it again."
            raise ModelError(message)
        self._export_data(version, files)
        self._refuse_converted(version.revision, {version.path: model, **files})
        return model

    def _export_data(self, version: ModelVersion, files: Mapping[str, Path]) -> None:
        """Writes data files, by their paths. What git has is copied by one process, and each
        content once: a change may name thousands of files, and all may be one blob."""
        data_files = [self._data_file(version, path) for path in files]
        for directory in dict.fromkeys(file.parent for file in files.values()):
            directory.mkdir(parents=True, exist_ok=True)
        in_git: dict[str, list[ModelVersion]] = {}
        for data_file in data_files:
            if data_file.storage == "git":
                in_git.setdefault(data_file.content_digest, []).append(data_file)
                continue
            with files[data_file.path].open("x+b") as file:
                self._copy(data_file, file)
        new = {blob: NewFile(files[at.path], at.path) for blob, (at, *_) in in_git.items()}
        fetch_blobs(self._git, new)
        write_blobs(self._git, version.revision, new)
        for first, *others in in_git.values():
            content = files[first.path]
            if content.stat().st_size <= MAX_POINTER_BYTES:
                with content.open("r+b") as file:
                    file.seek(0, os.SEEK_END)
                    replace_pointer(self._git, first, file)
            self._refuse_kept_twice((first, *others), content)
            for other in others:
                _link(content, files[other.path])

    def _refuse_kept_twice(self, data_files: Sequence[ModelVersion], content: Path) -> None:
        """Raises ModelError for a file in git that DVC keeps with other bytes: a stage's `cache:
        false` means equal ones."""
        outputs = self.stage_outputs(data_files[0].revision).files
        kept = [each for each in data_files if each.path in outputs]
        if not kept:
            return
        with content.open("rb") as file:
            md5 = hashlib.file_digest(file, partial(hashlib.md5, usedforsecurity=False)).hexdigest()
        for each in kept:
            if outputs[each.path].digest != md5:
                self._copy(_beside(each, each.path, "both"), BytesIO())

    def _refuse_converted(self, revision: str, files: Mapping[str, Path]) -> None:
        converted = self.conversions(revision, list(files)).items()
        # Thousands may be links to one file.
        once = {(attribute, files[path].stat().st_ino): path for path, attribute in converted}
        for (attribute, _), path in once.items():
            with files[path].open("rb") as content:
                is_changed = checkout.changes_bytes(attribute, content)
            if is_changed:
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

    def _data_file(self, version: ModelVersion, path: str) -> ModelVersion:
        """Returns an external data file's version, wherever it is stored; of one in git the content
        digest is its blob. Raises ModelError for what is no file."""
        places: dict[Literal["git", "dvc"], str] = {"git": path, "dvc": f"{path}.dvc"}
        entries = [self._entries(version.revision).get(each.encode()) for each in places.values()]
        in_git = entries[0] if entries[0] is not None and entries[0].kind == "file" else None
        output = self.stage_outputs(version.revision).files.get(path)
        if output is not None and in_git is not None:
            return _beside(version, path, "git", in_git.blob)
        if all(entries) or (any(entries) and output is not None):
            return _beside(version, path, "both")
        if output is not None:
            return _beside(version, path, "dvc")
        for (storage, place), entry in zip(places.items(), entries, strict=True):
            if entry is not None and entry.kind == "file":
                return _beside(version, path, storage, entry.blob)
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


def _link(content: Path, file: Path) -> None:
    """Makes a new file of the same content. Exported files never change."""
    try:
        os.link(content, file)
    except OSError:  # a file system without links, or with few
        with content.open("rb") as source, file.open("xb") as into:
            shutil.copyfileobj(source, into)


def _beside(
    version: ModelVersion, path: str, storage: Literal["git", "dvc", "both"], blob: str = ""
) -> ModelVersion:
    return ModelVersion(
        revision=version.revision,
        path=path,
        content_digest=blob,
        graph_digest=None,
        storage=storage,
        size_bytes=0,
    )


_: type[Repository] = GitRepository
