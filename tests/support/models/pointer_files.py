"""The pointers that Git LFS and DVC commit in place of a file."""

import hashlib
from pathlib import Path, PurePosixPath

from tests.support.git_repository import Checkout


def lfs_pointer_to(content: bytes) -> bytes:
    oid = hashlib.sha256(content).hexdigest()
    lines = ("version https://git-lfs.github.com/spec/v1", f"oid sha256:{oid}")
    return "\n".join((*lines, f"size {len(content)}\n")).encode()


def dvc_file_of(path: str, content: bytes) -> bytes:
    name = PurePosixPath(path).name
    return (
        f"outs:\n- md5: {md5_of(content)}\n  size: {len(content)}\n  hash: md5\n  path: {name}\n"
    ).encode()


def md5_of(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def keep_in_lfs(checkout: Checkout, content: bytes) -> Path:
    """Puts content where git-lfs keeps what it has downloaded."""
    oid = hashlib.sha256(content).hexdigest()
    return write(checkout.path / ".git" / "lfs" / "objects" / oid[:2] / oid[2:4] / oid, content)


def keep_in_dvc(checkout: Checkout, content: bytes, layout: str = "files/md5") -> Path:
    """Puts content where DVC keeps it: since 3.0 under files/md5, before right in the cache."""
    md5 = md5_of(content)
    return write(checkout.path / ".dvc" / "cache" / layout / md5[:2] / md5[2:], content)


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
