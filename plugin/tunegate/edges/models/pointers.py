"""Files that stand for others: Git LFS pointers and DVC files."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any, Literal

import msgspec
import yaml

from tunegate.edges.config.strict_yaml import read_yaml
from tunegate.errors import ModelError

_LFS_VERSION = b"version https://git-lfs.github.com/spec/v1"
_OID = re.compile(rb"oid sha256:([0-9a-f]{64})")
_SIZE = re.compile(rb"size (\d{1,19})")
MAX_POINTER_BYTES = 1024
MAX_DVC_BYTES = 256 * 1024
_OLDER_VERSIONS = {b"version http://git-media.io/v/2", b"version https://hawser.github.com/spec/v1"}
_MIN_LINES = 3
"""The number of lines after the version: the digest, the size, and the end of the last line."""
_MD5 = re.compile(r"[0-9a-f]{32}")


class ContentPointer(msgspec.Struct, frozen=True):
    """A pointer to content. `digest` is its sha-256 for LFS, its md5 for DVC; before 3.0, DVC took
    the md5 of what looked like text with its line ends as Unix writes them (`md5-text`). No
    `size_bytes`: the pointer does not say."""

    digest: str
    size_bytes: int | None
    digest_kind: Literal["sha256", "md5", "md5-text"]


def lfs_pointer(content: bytes) -> ContentPointer | None:
    """The pointer in a file, or None for any other content."""
    if len(content) > MAX_POINTER_BYTES:
        return None
    version, *lines = content.split(b"\n")
    if version != _LFS_VERSION or len(lines) < _MIN_LINES or lines[-1]:
        return None
    *extensions, oid_line, size_line, _ = lines
    oid, size = _OID.fullmatch(oid_line), _SIZE.fullmatch(size_line)
    if not oid or not size or not all(line.startswith(b"ext-") for line in extensions):
        return None
    return ContentPointer(oid[1].decode(), int(size[1]), "sha256")


def is_odd_lfs_pointer(content: bytes) -> bool:
    """Returns whether Git LFS would take for a pointer what is none to us: it forgives white space,
    and knows older versions."""
    if len(content) > MAX_POINTER_BYTES or lfs_pointer(content) is not None:
        return False
    lines = [line.strip() for line in content.split(b"\n") if line.strip()]
    if lines and lines[0] in _OLDER_VERSIONS:
        lines[0] = _LFS_VERSION
    return lfs_pointer(b"\n".join([*lines, b""])) is not None


def dvc_pointer(content: bytes, path: str) -> ContentPointer:
    """Returns the pointer in the DVC file of `path`. Raises ModelError where it says nothing of
    this file."""
    out = _output(content, path)
    md5 = out.get("md5")
    if isinstance(md5, str) and md5.endswith(".dir"):
        message = f'{path}.dvc: of a directory, which is not read. Run: dvc add "{path}"'
        raise ModelError(message)
    kind, size = out.get("hash", "md5-text"), out.get("size")
    is_known = kind in {"md5", "md5-text"} and (size is None or isinstance(size, int))
    if not is_known or not isinstance(md5, str) or not _MD5.fullmatch(md5):
        message = f'{path}.dvc: names no md5 of the file. Run: dvc add "{path}"'
        raise ModelError(message)
    return ContentPointer(md5, size, "md5" if kind == "md5" else "md5-text")


def _output(content: bytes, path: str) -> dict[str, Any]:
    """That of several which has the file's name."""
    try:
        parsed = read_yaml(content[:MAX_DVC_BYTES].decode())
    except (yaml.YAMLError, UnicodeDecodeError):
        parsed = None
    outs = parsed.get("outs") if isinstance(parsed, dict) else None
    named = [
        out
        for out in (outs if isinstance(outs, list) else ())
        if isinstance(out, dict) and out.get("path") == PurePosixPath(path).name
    ]
    if len(named) != 1 or len(content) > MAX_DVC_BYTES:
        message = f'{path}.dvc: not a DVC file of this name. Run: dvc add "{path}"'
        raise ModelError(message)
    return named[0]
