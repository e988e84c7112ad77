"""Reads the content of a model for which git holds only a pointer: its bytes must match."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import shlex
import shutil
from collections.abc import Mapping
from contextlib import closing
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal, NamedTuple

import msgspec
import yaml

from tunegate.artifacts.changes import ModelVersion
from tunegate.errors import ModelError, UnreadModelError
from tunegate.regular_files import opened_inside, read_regular
from tunegate.system.git.dvc import OF_ONE_FILE, StageOutput, cached_places
from tunegate.system.git.process import GitProcess, Writer
from tunegate.system.strict_yaml import read_yaml

_PIECE_BYTES = 2**20
"""The size of pieces that are copied at once, the same in which DVC converts line ends."""
_ESCAPED = re.compile(r"\\x[89a-f][0-9a-f]")


def copy_content(
    git: GitProcess,
    version: ModelVersion,
    into: BinaryIO,
    dvc_source: StageOutput | bytes | None = None,
) -> None:
    """Copies the content into an empty file, piece by piece. `dvc_source` is what a DVC pipeline
    says about it, or its DVC file, if that was read. Raises ModelError naming the pointer that is
    not hydrated and the command to run, or bytes that do not match the pointer, or that git does
    not have."""
    path = version.path
    if version.storage == "link":
        message = f"{path}: a symbolic link, which is not followed. Commit the file itself."
        raise ModelError(message)
    if version.storage == "both":
        who = "by git and DVC or two files of DVC"
        message = f"{path}: kept twice, {who}. Remove the one that does not count."
        raise ModelError(message)
    if version.storage == "dvc":
        _copy_from_dvc(git, version, into, dvc_source)
        return
    _copy_blob(git, version.revision, path, into)
    replace_pointer(git, version, into)


def replace_pointer(git: GitProcess, version: ModelVersion, into: BinaryIO) -> None:
    """Replaces a Git LFS pointer in a file, read or written to its end, by what it stands for.
    Raises ModelError as `copy_content` does."""
    path = version.path
    if into.tell() > MAX_POINTER_BYTES:
        return
    into.seek(0)
    content = into.read()
    pointer = lfs_pointer(content)
    if is_odd_lfs_pointer(content):
        what = "nearly a Git LFS pointer, or one with an extension, whose program is not run"
        message = f"{path}: {what}. Write it anew: git add --renormalize {shlex.quote(path)}"
        raise ModelError(message)
    if pointer is not None:
        into.seek(0)
        into.truncate()
        _copy_from_lfs(git, content, pointer, version, into)


def _copy_blob(git: GitProcess, revision: str, path: str, into: BinaryIO) -> None:
    if not git.copy("cat-file", "blob", f"{revision}:{path}", into=into):
        raise _unavailable(revision, path)


def _unavailable(revision: str, path: str) -> UnreadModelError:
    if _ESCAPED.search(path):
        return UnreadModelError(missing(revision, path))
    blob_name = shlex.quote(f"{revision[:12]}:{path}")
    message = f"{path}: its content is not in this clone, and cannot be fetched."
    return UnreadModelError(f"{message} This says why: git cat-file blob {blob_name} > /dev/null")


class NewFile(NamedTuple):
    """A file to write, and the path that has its content in git."""

    file: Path
    path: str


def write_blobs(git: GitProcess, revision: str, files: Mapping[str, NewFile]) -> None:
    """Writes each of these blobs into its new file, piece by piece and by one process: a model may
    have thousands. A process that ends early is followed by another while each brings some. Raises
    UnreadModelError for a blob that git does not have."""
    waiting = dict(files)
    while waiting:
        first = next(iter(waiting))
        lines = "".join(f"{blob}\n" for blob in waiting).encode()
        with closing(_Batch(revision, waiting)) as batch:
            git.copy("cat-file", "--batch", "--buffer", standard_input=lines, into=batch)
        if first in waiting:
            raise _unavailable(revision, waiting[first].path)


class _Batch:
    """A writer of what `cat-file --batch` prints, which takes each finished blob out of `waiting`.
    It leaves no part of a file."""

    def __init__(self, revision: str, waiting: dict[str, NewFile]) -> None:
        self._revision, self._waiting = revision, waiting
        self._header, self._blob, self._left_bytes = b"", "", 0
        self._into: BinaryIO | None = None

    def close(self) -> None:
        if self._into is not None:
            self._into.close()
            self._waiting[self._blob].file.unlink()

    def write(self, piece: bytes) -> int:
        position = 0
        while position < len(piece):
            begin = position
            if self._into is None:
                position = piece.find(b"\n", begin) + 1 or len(piece)
                self._header += piece[begin:position]
                if self._header.endswith(b"\n"):
                    self._begin(self._header.decode().split())
                    self._header = b""
            else:
                position = min(len(piece), begin + self._left_bytes)
                self._left_bytes -= self._into.write(piece[begin:position])
            if self._into is not None and not self._left_bytes:
                self._into.close()
                self._into = None
                del self._waiting[self._blob]
        return len(piece)

    def _begin(self, words: list[str]) -> None:
        if not words:  # the end of the line that a content ends
            return
        self._blob, kind, *size_bytes = words
        if kind != "blob":
            raise _unavailable(self._revision, self._waiting[self._blob].path)
        self._left_bytes = int(size_bytes[0])
        self._into = self._waiting[self._blob].file.open("xb")


def missing(revision: str, path: str) -> str:
    """Returns why git shows no such file. A name of other bytes than UTF-8 comes escaped."""
    if _ESCAPED.search(path):
        return f"{path}: its name is not UTF-8. Rename it."
    return f"{path}: not in {revision[:12]}, or its content cannot be fetched."


_LFS_PATTERN = re.compile(r"[\\*?\[\],!#]|^\s|\s$")


def _copy_from_lfs(
    git: GitProcess,
    content: bytes,
    pointer: ContentPointer,
    version: ModelVersion,
    into: BinaryIO,
) -> None:
    """Copies an LFS file. The advice names the revision: `git lfs pull` fetches the head's files,
    not the base's."""
    path, oid = version.path, pointer.digest
    # Git LFS takes a pattern, and several of them between commas.
    only = "" if _LFS_PATTERN.search(path) else f" --include={shlex.quote(path)}"
    what = f"origin {version.revision}{only}"
    sink = _Checked(into, pointer)
    source = opened_inside(git.common_dir, f"lfs/objects/{oid[:2]}/{oid[2:4]}/{oid}")
    if source is not None:
        sink.copy(source)
        sink.require(f"{path}: the Git LFS store", f"git lfs fetch --refetch {what}")
        return
    problem = lfs_download(git, content, path, into=sink)
    if not problem and not _is_pointer(into):
        sink.require(f"{path}: git lfs smudge", f"git lfs fetch {what}")
        return
    message = (
        f"{path} at {version.revision[:12]}: only its Git LFS pointer is here, and "
        f"{problem or _NOT_HAD}. Run: git lfs fetch {what}"
    )
    raise ModelError(message)


def _copy_from_dvc(
    git: GitProcess, version: ModelVersion, into: BinaryIO, dvc_source: StageOutput | bytes | None
) -> None:
    path = version.path
    stage = dvc_source if isinstance(dvc_source, StageOutput) else None
    if stage is not None and stage.is_contradicted:
        message = f"{path}: kept by DVC with several digests ({stage.digest}). Keep it once."
        raise ModelError(message)
    if stage is None:
        content = dvc_source if isinstance(dvc_source, bytes) else _dvc_file(git, version)
        pointer, dvc_path = dvc_pointer(content, path), f"{path}.dvc"
    else:
        pointer = ContentPointer(stage.digest, stage.size_bytes, stage.digest_kind)
        dvc_path = path
    sink = _Checked(into, pointer)

    def require(where: str) -> None:
        if sink.problem():  # the command takes several processes, for each of thousands of files
            sink.require(f"{path}: {where}", dvc_command(git, version, dvc_path, "pull --force"))

    for root, place in cached_places(git.root, path, pointer.digest):
        source = opened_inside(root, place) if root.is_dir() else None
        if source is not None:
            sink.copy(source)
            require("the DVC cache")
            return
    # If the cache is elsewhere, the working tree may still have the checked out file.
    checked_out = opened_inside(git.root, path)
    if checked_out is not None:
        sink.copy(checked_out)
        if sink.problem() and _is_checked_out(git, version):
            require("the working tree")
        if not sink.problem():
            return
    command = dvc_command(git, version, dvc_path)
    where = f"{path} at {version.revision[:12]}"
    if stage is None:
        message = f"{where}: only its .dvc file is here. Run: {command}"
    else:
        message = f"{where}: only its entry in a file of DVC is here. Run: {command}"
    raise ModelError(message)


def dvc_command(git: GitProcess, version: ModelVersion, dvc_path: str, pull: str = "pull") -> str:
    """Returns the command that gets what DVC keeps of a revision. DVC reads the commit that is
    checked out, so a `dvc pull` never gets the base's files; and it works where it was set up."""
    ask = ("rev-parse", "--verify", "-q")
    above = [str(parent) for parent in PurePosixPath(version.path).parents]
    place = next((d for d in above if git.text(*ask, f"{version.revision}:./{d}/.dvc")), ".")
    dvc = "dvc" if place == "." else f"dvc --cd {shlex.quote(place)}"
    path = shlex.quote(posixpath.relpath(dvc_path, place))
    if _is_checked_out(git, version):
        return f"{dvc} {pull} {path}"
    return f"git checkout {version.revision} && {dvc} fetch {path} && git checkout -"


def _is_checked_out(git: GitProcess, version: ModelVersion) -> bool:
    ask = ("rev-parse", "--verify", "-q")
    return git.text(*ask, version.revision) == git.text(*ask, "HEAD")


def _dvc_file(git: GitProcess, version: ModelVersion) -> bytes:
    content = BytesIO()
    _copy_blob(git, version.revision, f"{version.path}.dvc", content)
    return content.getvalue()


class _Checked:
    """A file to write to that checks what is written against a pointer."""

    def __init__(self, into: BinaryIO, pointer: ContentPointer) -> None:
        self._into, self._pointer = into, pointer
        kind = "sha256" if pointer.digest_kind == "sha256" else "md5"
        self._digest = hashlib.new(kind, usedforsecurity=False)
        self._of_text = hashlib.md5(usedforsecurity=False)
        self._size_bytes = 0

    def write(self, piece: bytes) -> int:
        self._size_bytes += len(piece)
        if self._pointer.size_bytes is None or self._size_bytes <= self._pointer.size_bytes:
            self._digest.update(piece)
            if self._pointer.digest_kind == "md5-text":
                self._of_text.update(piece.replace(b"\r\n", b"\n"))
            self._into.write(piece)
        return len(piece)

    def copy(self, source: BinaryIO) -> None:
        """Copies the source, and stops after the first piece that is too much."""
        most = self._pointer.size_bytes
        with source:
            while piece := source.read(_PIECE_BYTES):
                self.write(piece)
                if most is not None and self._size_bytes > most:
                    return

    def require(self, where: str, advice: str) -> None:
        """Raises ModelError for other bytes than those of the pointer."""
        if problem := self.problem():
            raise ModelError(f"{where} has {problem}. Run: {advice}")

    def problem(self) -> str:
        """Returns how the bytes differ from those of the pointer, '' if they do not."""
        digest, most = self._pointer.digest, self._pointer.size_bytes
        if most is not None and self._size_bytes != most:
            size = "more" if self._size_bytes > most else f"{self._size_bytes}"
            return f"{size} bytes, where the pointer says {most}"
        digests = {self._digest.hexdigest()}
        if self._pointer.digest_kind == "md5-text":
            digests.add(self._of_text.hexdigest())
        if digest in digests:
            return ""
        digests_text = f"{self._digest.name} {min(digests)[:12]}, not {digest[:12]}"
        return f"other bytes than the pointer says ({digests_text})"


def _is_pointer(into: BinaryIO) -> bool:
    if into.tell() > MAX_POINTER_BYTES:
        return False
    into.seek(0)
    return lfs_pointer(into.read()) is not None


# Files that stand for others: Git LFS pointers and DVC files.

_LFS_VERSION = b"version https://git-lfs.github.com/spec/v1"
_OID = re.compile(rb"oid sha256:([0-9a-f]{64})")
_SIZE = re.compile(rb"size (\d{1,19})")
MAX_POINTER_BYTES = 1024
MAX_DVC_BYTES = 256 * 1024
_OLDER_VERSIONS = {b"version http://git-media.io/v/2", b"version https://hawser.github.com/spec/v1"}
_MIN_LINES = 3
"""The lines after the version: the digest, the size, and the empty one after the last newline."""
_HERE = (".", "./")
"""The allowed values of `wdir`: with another one DVC's pointer stands for a file of another
directory."""
_MD5 = re.compile(r"[0-9a-f]{32}")


class ContentPointer(msgspec.Struct, frozen=True):
    """A pointer to content. `digest` is its SHA-256 for LFS, its MD5 for DVC; before 3.0, DVC took
    the MD5 of apparent text with Unix line ends (`md5-text`). `size_bytes` is None if the pointer
    does not say."""

    digest: str
    size_bytes: int | None
    digest_kind: Literal["sha256", "md5", "md5-text"]


def lfs_pointer(content: bytes) -> ContentPointer | None:
    """Returns the LFS pointer in a file, None for any other content."""
    if len(content) > MAX_POINTER_BYTES:
        return None
    version, *lines = content.split(b"\n")
    if version != _LFS_VERSION or len(lines) < _MIN_LINES or lines[-1]:
        return None
    oid, size = _OID.fullmatch(lines[0]), _SIZE.fullmatch(lines[1])
    if not oid or not size or len(lines) > _MIN_LINES:
        return None
    return ContentPointer(oid[1].decode(), int(size[1]), "sha256")


def is_odd_lfs_pointer(content: bytes) -> bool:
    """Returns whether Git LFS would accept a pointer that we do not: it allows extra white space,
    knows older versions, and runs extensions, which make other bytes of the object."""
    if len(content) > MAX_POINTER_BYTES or lfs_pointer(content) is not None:
        return False
    texts = map(bytes.strip, content.split(b"\n"))
    lines = [line for line in texts if line and not line.startswith(b"ext-")]
    if lines and lines[0] in _OLDER_VERSIONS:
        lines[0] = _LFS_VERSION
    return lfs_pointer(b"\n".join([*lines, b""])) is not None


def dvc_pointer(content: bytes, path: str) -> ContentPointer:
    """Returns the pointer in the DVC file of `path`. Raises ModelError if it does not mention this
    file."""
    usual = OF_ONE_FILE.fullmatch(content)
    if usual is not None and usual["path"].decode() == PurePosixPath(path).name:
        size = None if usual["size"] is None else int(usual["size"])
        return ContentPointer(usual["md5"].decode(), size, "md5" if usual["hash"] else "md5-text")
    out = _output(content, path)
    md5 = out.get("md5")
    if isinstance(md5, str) and md5.endswith(".dir"):
        message = f"{path}.dvc: of a directory, which is not read. Run: dvc add {shlex.quote(path)}"
        raise ModelError(message)
    kind, size = out.get("hash", "md5-text"), out.get("size")
    is_known = kind in {"md5", "md5-text"} and (size is None or isinstance(size, int))
    if not is_known or not isinstance(md5, str) or not _MD5.fullmatch(md5):
        message = f"{path}.dvc: names no md5 of the file. Run: dvc add {shlex.quote(path)}"
        raise ModelError(message)
    return ContentPointer(md5, size, "md5" if kind == "md5" else "md5-text")


def _output(content: bytes, path: str) -> dict[str, Any]:
    """Returns the one of several outputs that has the file's name."""
    try:
        document = read_yaml(content[:MAX_DVC_BYTES].decode())
    except (yaml.YAMLError, UnicodeDecodeError):
        document = None
    if isinstance(document, dict) and document.get("wdir", ".") not in _HERE:
        message = (
            f"{path}.dvc: its `wdir` leads to a file elsewhere. Run: dvc add {shlex.quote(path)}"
        )
        raise ModelError(message)
    outs = document.get("outs") if isinstance(document, dict) else None
    outputs = [
        out
        for out in (outs if isinstance(outs, list) else ())
        if isinstance(out, dict) and _is_path_of(out, PurePosixPath(path).name)
    ]
    if len(outputs) != 1 or len(content) > MAX_DVC_BYTES:
        message = f"{path}.dvc: not a DVC file of this name. Run: dvc add {shlex.quote(path)}"
        raise ModelError(message)
    return outputs[0]


def _is_path_of(out: dict[str, Any], name: str) -> bool:
    """Returns whether an output is the file, by its name in any words, such as `./m.onnx`."""
    place = out.get("path")
    return isinstance(place, str) and posixpath.normpath(place) == name


# Downloads missing files by Git LFS, from the server that the job's own settings name. `.lfsconfig`
# is a file of the checkout: with it, a pull request could send the job's credentials anywhere.

_SERVER = "lfs.url"
_OF_THE_CHECKOUT = ".lfsconfig"
_WITHOUT_SERVER = re.compile(
    r"lfs\.(fetchinclude|fetchexclude|skipdownloaderrors|allowincompletepush|(.*\.)?locksverify)"
)
"""The settings of `.lfsconfig` that send nothing to another server."""
_EVERY_PATH = {"lfs.fetchinclude": "", "lfs.fetchexclude": ""}
_NOT_HAD = "git-lfs could not fetch it"


def lfs_download(git: GitProcess, pointer: bytes, path: str, into: Writer) -> str:
    """Writes git-lfs's answer into a file. Returns why there is none, '' if there is."""
    if shutil.which("git-lfs") is None:
        return "git-lfs is not installed: do that first"
    server = git.text("config", "--get", _SERVER)
    if server is None and names_a_server(git):
        return f"{_OF_THE_CHECKOUT} names a server, which a change may choose: it is not asked"
    settings = _EVERY_PATH if server is None else {**_EVERY_PATH, _SERVER: server}
    smudge = ("lfs", "smudge", "--", path)
    is_fetched = git.copy(*smudge, into=into, standard_input=pointer, settings=settings)
    return "" if is_fetched else _NOT_HAD


def names_a_server(git: GitProcess) -> bool:
    """Returns whether the checkout has a file that may name another server to git-lfs, which reads
    the working tree, the index and the head."""
    objects = (f":{_OF_THE_CHECKOUT}", f"HEAD:{_OF_THE_CHECKOUT}")
    known_objects = [each for each in objects if git.text("rev-parse", "--verify", "-q", each)]
    contents = [git.output("cat-file", "blob", each) for each in known_objects]
    if os.path.lexists(git.root / _OF_THE_CHECKOUT):
        contents.append(_text_of(git.root / _OF_THE_CHECKOUT))
    return any(content is None or _may_name_a_server(git, content) for content in contents)


def _text_of(path: Path) -> bytes | None:
    """Returns the content of a plain file, None for anything else, which might never end."""
    try:
        return read_regular(path)
    except OSError:
        return None


def _may_name_a_server(git: GitProcess, settings: bytes) -> bool:
    """Returns whether any setting is not known to be harmless."""
    names = git.output("config", "-f", "-", "-z", "--list", "--name-only", standard_input=settings)
    if names is None:
        return True
    keys = [key.decode(errors="replace").lower() for key in names.split(b"\0") if key]
    return not all(_WITHOUT_SERVER.fullmatch(key) for key in keys)


def is_what_pointer_says(git: GitProcess, path: str) -> bool:
    """Returns whether the working tree's file has the bytes that the indexed pointer stands for:
    git without its filters, which the checkout chooses, reports it as changed."""
    blob = git.output("cat-file", "--batch-check", standard_input=f":0:{path}\n".encode()) or b""
    words = blob.split()
    if words[1:2] != [b"blob"] or int(words[2]) > MAX_POINTER_BYTES:
        return False
    pointer = lfs_pointer(git.output("cat-file", "blob", words[0].decode()) or b"")
    file = opened_inside(git.root, path) if pointer else None
    if pointer is None or file is None:
        return False
    with file:
        if os.fstat(file.fileno()).st_size != pointer.size_bytes:
            return False
        digest = hashlib.sha256()
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
        return digest.hexdigest() == pointer.digest
