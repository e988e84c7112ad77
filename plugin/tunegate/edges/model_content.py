"""A model's real bytes where git holds only a pointer to them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from tunegate.artifacts.changes import ModelVersion
from tunegate.edges.git_process import GitProcess
from tunegate.edges.lfs_download import lfs_download
from tunegate.edges.pointers import Pointer, dvc_output, lfs_pointer
from tunegate.errors import ModelError

Read = Callable[[str, str], bytes]
_MD5 = "md5:"


def read_content(git: GitProcess, read: Read, version: ModelVersion) -> bytes:
    """Raises ModelError naming the pointer that is not hydrated, and what to run."""
    if version.storage == "link":
        message = f"{version.path}: a symbolic link, which is not followed. Commit the file itself."
        raise ModelError(message)
    if version.storage == "dvc":
        return _from_dvc(git, read, version)
    content = read(version.revision, version.path)
    pointer = lfs_pointer(content)
    return content if pointer is None else _from_lfs(git, content, pointer, version.path)


def _from_lfs(git: GitProcess, content: bytes, pointer: Pointer, path: str) -> bytes:
    oid = pointer.digest
    stored = _common_dir(git) / "lfs" / "objects" / oid[:2] / oid[2:4] / oid
    if stored.is_file():
        return stored.read_bytes()
    pulled = lfs_download(git, content, path)
    if len(pulled) == pointer.size_bytes and lfs_pointer(pulled) is None:
        return pulled
    message = (
        f"{path}: only its Git LFS pointer is here. "
        f'Run: git lfs pull --include="{path}" (and install git-lfs where it is missing).'
    )
    raise ModelError(message)


def _from_dvc(git: GitProcess, read: Read, version: ModelVersion) -> bytes:
    md5 = _md5(read, version)
    cache = git.root / ".dvc" / "cache"
    for stored in (cache / "files" / "md5" / md5[:2] / md5[2:], cache / md5[:2] / md5[2:]):
        if stored.is_file():
            return stored.read_bytes()
    # The cache may lie elsewhere; then the working tree has what is checked out.
    checked_out = git.root / version.path
    if checked_out.is_file():
        content = checked_out.read_bytes()
        if hashlib.md5(content, usedforsecurity=False).hexdigest() == md5:
            return content
    message = f'{version.path}: only its .dvc file is here. Run: dvc pull "{version.path}.dvc"'
    raise ModelError(message)


def _md5(read: Read, version: ModelVersion) -> str:
    if version.content_digest.startswith(_MD5):
        return version.content_digest.removeprefix(_MD5)
    output = dvc_output(read(version.revision, f"{version.path}.dvc"))
    if output is None:
        message = f'{version.path}.dvc: not a DVC file of one output. Run: dvc add "{version.path}"'
        raise ModelError(message)
    return output[1].digest


def _common_dir(git: GitProcess) -> Path:
    """Where the objects are: of a worktree, in the repository it belongs to."""
    named = git.text("rev-parse", "--git-common-dir")
    return (git.root / named).resolve() if named else git.git_dir
