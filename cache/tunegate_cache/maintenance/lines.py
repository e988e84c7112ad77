"""Small objects of JSON lines: created once, never changed, each with the digest of its bytes at
the end of its name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tunegate_cache.stores.store import ObjectNotFoundError, ObjectStore

MAX_LINES_BYTES = 256 * 1024
"""The limit on one object; a larger one is not read."""
_READERS = 16
_DIGEST = re.compile(r"-(?P<digest>[0-9a-f]{64})\.jsonl\Z")


class LinesTooLongError(ValueError):
    """The lines of one object have more than MAX_LINES_BYTES."""


def write_lines(store: ObjectStore, start: str, lines: bytes) -> str:
    """Store the lines in an object whose name begins so; the whole name comes back. Raises
    StoreUnavailableError, and LinesTooLongError."""
    if len(lines) > MAX_LINES_BYTES:
        message = f"{len(lines)} bytes, at most {MAX_LINES_BYTES} are kept"
        raise LinesTooLongError(message)
    name = f"{start}-{hashlib.sha256(lines).hexdigest()}.jsonl"
    store.write(name, lines)
    return name


def read_lines(store: ObjectStore, names: Sequence[str]) -> Sequence[bytes]:
    """The lines of each object, in this order. What is gone, too large or not what its name says is
    left out. Raises StoreUnavailableError."""
    with ThreadPoolExecutor(_READERS) as pool:
        found = pool.map(lambda name: _read(store, name), names)
        return [body for body in found if body is not None]


def _read(store: ObjectStore, name: str) -> bytes | None:
    try:
        body = store.read_part(name, 0, MAX_LINES_BYTES + 1)
    except ObjectNotFoundError:
        return None
    if len(body) > MAX_LINES_BYTES:
        return None
    named = _DIGEST.search(name)
    is_whole = named is not None and hashlib.sha256(body).hexdigest() == named["digest"]
    return body if is_whole else None
