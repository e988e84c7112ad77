"""A model's real bytes where git holds only a pointer to them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from tunegate.artifacts.changes import ModelVersion
from tunegate.edges.git_process import GitProcess
from tunegate.edges.pointers import dvc_output, lfs_pointer
from tunegate.errors import ModelError

Read = Callable[[str, str], bytes]
_PULL_SECONDS = 600


def read_content(git: GitProcess, read: Read, version: ModelVersion) -> bytes:
    """Raises ModelError naming the pointer that is not hydrated, and what to run."""
    if version.storage == "dvc":
        return _from_dvc(git, read, version)
    content = read(version.revision, version.path)
    pointer = lfs_pointer(content)
    return content if pointer is None else _from_lfs(git, content, pointer.digest, version.path)


def _from_lfs(git: GitProcess, pointer: bytes, oid: str, path: str) -> bytes:
    stored = _common_dir(git) / "lfs" / "objects" / oid[:2] / oid[2:4] / oid
    if stored.is_file():
        return stored.read_bytes()
    if shutil.which("git-lfs"):
        smudged = subprocess.run(
            ["git", "lfs", "smudge", "--", path],
            cwd=git.root,
            input=pointer,
            capture_output=True,
            timeout=_PULL_SECONDS,
            check=False,
        )
        if smudged.returncode == 0 and lfs_pointer(smudged.stdout) is None:
            return smudged.stdout
    message = (
        f"{path}: only its Git LFS pointer is here. "
        f'Run: git lfs pull --include="{path}" (and install git-lfs where it is missing).'
    )
    raise ModelError(message)


def _from_dvc(git: GitProcess, read: Read, version: ModelVersion) -> bytes:
    found = dvc_output(read(version.revision, f"{version.path}.dvc"))
    md5 = found[1].digest if found is not None else version.content_digest.removeprefix("md5:")
    cache = git.root / ".dvc" / "cache"
    for stored in (cache / "files" / "md5" / md5[:2] / md5[2:], cache / md5[:2] / md5[2:]):
        if stored.is_file():
            return stored.read_bytes()
    name = PurePosixPath(version.path).name
    message = f"{version.path}: only {name}.dvc is here. Run: dvc pull {version.path}.dvc"
    raise ModelError(message)


def _common_dir(git: GitProcess) -> Path:
    named = git.text("rev-parse", "--git-common-dir")
    return (git.root / named).resolve() if named else git.git_dir
