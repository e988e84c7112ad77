"""Files that stand for others: Git LFS pointers and DVC files."""

from __future__ import annotations

import re

import msgspec
import yaml

_LFS = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?oid sha256:(?P<oid>[0-9a-f]{64})\n"
    rb"size (?P<size>\d+)\n"
)
LARGEST_POINTER_BYTES = 1024
_MD5 = re.compile(r"[0-9a-f]{32}")


class Pointer(msgspec.Struct, frozen=True):
    """`digest` is the content's sha-256 for LFS, its md5 for DVC."""

    digest: str
    size_bytes: int


def lfs_pointer(content: bytes) -> Pointer | None:
    """The pointer in a file, or None for any other content."""
    if len(content) > LARGEST_POINTER_BYTES:
        return None
    match = _LFS.fullmatch(content)
    return Pointer(match["oid"].decode(), int(match["size"])) if match else None


def dvc_output(content: bytes) -> tuple[str, Pointer] | None:
    """(path relative to the .dvc file, pointer) of its first output; None if it is none."""
    try:
        parsed = yaml.safe_load(content)
        out = parsed["outs"][0]
        path, md5, size = str(out["path"]), str(out["md5"]), int(out.get("size", 0))
    except (yaml.YAMLError, LookupError, TypeError, ValueError, RecursionError):
        return None
    return (path, Pointer(md5, size)) if _MD5.fullmatch(md5) else None
