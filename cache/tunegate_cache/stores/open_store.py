"""A cache address to its store."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.s3 import S3Store
from tunegate_cache.stores.store import MaintainedStore


class UnknownAddressError(ValueError):
    """The address names no kind of store there is."""


def locate(url: str, *, endpoint_url: str | None, region: str | None) -> MaintainedStore:
    """`s3://bucket/prefix`, `file:///directory`, `memory:` or a plain directory. Nothing is asked
    yet. Raises UnknownAddressError."""
    parts = urlsplit(url)
    if is_remote(url) and parts.netloc:
        return S3Store(parts.netloc, parts.path, endpoint_url=endpoint_url, region=region)
    if parts.scheme == "file" and not parts.netloc and parts.path:
        return FileStore(Path(unquote(parts.path)))
    if url == "memory:":
        return MemoryStore()
    if url and not parts.scheme:
        return FileStore(Path(url).expanduser())
    message = f'"{url}" is no cache address; write s3://bucket/prefix or a directory'
    raise UnknownAddressError(message)


def is_remote(url: str) -> bool:
    """Whether local copies are worth keeping."""
    return urlsplit(url).scheme == "s3"


def place_name(url: str, *, endpoint_url: str | None) -> str:
    """A folder name for what a machine keeps of this store; no two stores share one."""
    return hashlib.sha256(f"{endpoint_url or ''} {url}".encode()).hexdigest()[:16]
