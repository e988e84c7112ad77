"""The content of a model where git holds only a pointer: its bytes must match the pointer."""

from __future__ import annotations

import hashlib
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from tunegate.artifacts.changes import ModelVersion
from tunegate.edges.git.lfs_download import lfs_download
from tunegate.edges.git.process import GitProcess
from tunegate.edges.models.pointers import (
    MAX_POINTER_BYTES,
    ContentPointer,
    dvc_pointer,
    is_odd_lfs_pointer,
    lfs_pointer,
)
from tunegate.errors import ModelError, RevisionError
from tunegate.regular_files import opened_inside

_PIECE_BYTES = 2**20
"""The size of a piece that is copied at once, as large as the pieces
in which DVC replaces line ends."""


def copy_content(git: GitProcess, version: ModelVersion, into: BinaryIO) -> None:
    """Copies the content into an empty file, piece by piece. Raises ModelError naming the pointer
    that is not hydrated, and what to run, or bytes that are not those of the pointer;
    RevisionError for a file that is not there."""
    path = version.path
    if version.storage == "link":
        message = f"{path}: a symbolic link, which is not followed. Commit the file itself."
        raise ModelError(message)
    if version.storage == "both":
        message = f"{path}: in git, and in {path}.dvc too. Remove the one that does not count."
        raise ModelError(message)
    if version.storage == "dvc":
        _copy_from_dvc(git, version, into)
        return
    _copy_blob(git, version.revision, path, into)
    if into.tell() > MAX_POINTER_BYTES:
        return
    into.seek(0)
    content = into.read()
    pointer = lfs_pointer(content)
    if is_odd_lfs_pointer(content):
        message = f"{path}: nearly a Git LFS pointer. Write it anew: git add --renormalize {path}"
        raise ModelError(message)
    if pointer is not None:
        into.seek(0)
        into.truncate()
        _copy_from_lfs(git, content, pointer, path, into)


def _copy_blob(git: GitProcess, revision: str, path: str, into: BinaryIO) -> None:
    if not git.copy("cat-file", "blob", f"{revision}:{path}", into=into):
        message = f"{path}: not in {revision[:12]}, or its content cannot be fetched."
        raise RevisionError(message)


def _copy_from_lfs(
    git: GitProcess, content: bytes, pointer: ContentPointer, path: str, into: BinaryIO
) -> None:
    oid = pointer.digest
    checked = _Checked(into, pointer)
    stored = opened_inside(_common_dir(git), f"lfs/objects/{oid[:2]}/{oid[2:4]}/{oid}")
    if stored is not None:
        checked.copy(stored)
        checked.require(f"{path}: the Git LFS store", f'git lfs fetch --refetch --include="{path}"')
        return
    if lfs_download(git, content, path, into=checked) and not _is_pointer(into):
        checked.require(f"{path}: git lfs smudge", f'git lfs pull --include="{path}"')
        return
    message = (
        f"{path}: only its Git LFS pointer is here. "
        f'Run: git lfs pull --include="{path}" (and install git-lfs where it is missing).'
    )
    raise ModelError(message)


def _copy_from_dvc(git: GitProcess, version: ModelVersion, into: BinaryIO) -> None:
    path = version.path
    pointer = dvc_pointer(_dvc_file(git, version), path)
    md5 = pointer.digest
    checked = _Checked(into, pointer)
    advice = f'dvc pull --force "{path}.dvc"'
    for place in (f".dvc/cache/files/md5/{md5[:2]}/{md5[2:]}", f".dvc/cache/{md5[:2]}/{md5[2:]}"):
        stored = opened_inside(git.root, place)
        if stored is not None:
            checked.copy(stored)
            checked.require(f"{path}: the DVC cache", advice)
            return
    # The cache may lie elsewhere; then the working tree has what is checked out.
    checked_out = opened_inside(git.root, path)
    if checked_out is not None:
        checked.copy(checked_out)
        checked.require(f"{path}: the working tree", advice)
        return
    message = f'{path}: only its .dvc file is here. Run: dvc pull "{path}.dvc"'
    raise ModelError(message)


def _dvc_file(git: GitProcess, version: ModelVersion) -> bytes:
    content = BytesIO()
    _copy_blob(git, version.revision, f"{version.path}.dvc", content)
    return content.getvalue()


class _Checked:
    """A file to write to that knows what it must become."""

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
        """Ends behind the first piece that is too much."""
        most = self._pointer.size_bytes
        with source:
            while piece := source.read(_PIECE_BYTES):
                self.write(piece)
                if most is not None and self._size_bytes > most:
                    return

    def require(self, where: str, advice: str) -> None:
        """Raises ModelError for other bytes than those of the pointer."""
        wanted, most = self._pointer.digest, self._pointer.size_bytes
        if most is not None and self._size_bytes != most:
            compared = "more" if self._size_bytes > most else f"{self._size_bytes}"
            message = f"{where} has {compared} bytes, where the pointer says {most}. Run: {advice}"
            raise ModelError(message)
        found = {self._digest.hexdigest()}
        if self._pointer.digest_kind == "md5-text":
            found.add(self._of_text.hexdigest())
        if wanted not in found:
            message = (
                f"{where} has other bytes than the pointer says "
                f"({self._digest.name} {min(found)[:12]}, not {wanted[:12]}). Run: {advice}"
            )
            raise ModelError(message)


def _is_pointer(into: BinaryIO) -> bool:
    if into.tell() > MAX_POINTER_BYTES:
        return False
    into.seek(0)
    return lfs_pointer(into.read()) is not None


def _common_dir(git: GitProcess) -> Path:
    """The directory with the objects: a worktree has them in the repository it belongs to."""
    named = git.text("rev-parse", "--git-common-dir")
    return (git.root / named).resolve() if named else git.git_dir
