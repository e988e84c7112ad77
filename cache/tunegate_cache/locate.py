"""A cache address to its store."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import urlsplit

from tunegate_cache.files import FileStore
from tunegate_cache.memory import MemoryStore
from tunegate_cache.read_through import ReadThroughStore
from tunegate_cache.store import ObjectStore


class UnknownAddressError(ValueError):
    """The address names no kind of store there is."""


def locate(
    url: str, *, endpoint_url: str | None, region: str | None, tier: Path | None
) -> ObjectStore:
    """`s3://bucket/prefix`, `file:///directory`, `memory:` or a plain directory. Objects of a
    bucket are copied under `tier` as they are read. Raises UnknownAddressError."""
    parts = urlsplit(url)
    match parts.scheme:
        case "s3" if parts.netloc:
            # The SDK takes 0.4 s to import; a directory needs none of it.
            from tunegate_cache.s3 import S3Store  # noqa: PLC0415

            bucket = S3Store(parts.netloc, parts.path, endpoint_url=endpoint_url, region=region)
            if tier is None:
                return bucket
            name = hashlib.sha256(f"{endpoint_url or ''} {url}".encode()).hexdigest()[:16]
            return ReadThroughStore(FileStore(tier / name), bucket)
        case "file":
            return FileStore(Path(parts.path))
        case "memory":
            return MemoryStore()
        case "":
            return FileStore(Path(url).expanduser())
        case _:
            message = f'"{url}" is no cache address; write s3://bucket/prefix or a directory'
            raise UnknownAddressError(message)
