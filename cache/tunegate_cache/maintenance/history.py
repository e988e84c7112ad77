"""What runs have said, one small object for each: JSON lines under a
zone, never changed, never joined.

ms1/z/<zone>/history/<milliseconds13>-<sha256>.jsonl

Lines are somebody's words: whoever may write to the zone may write any. They are for people to look
at, and nothing is built or decided by them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tunegate_cache.format.names import OBJECT_ROOT
from tunegate_cache.stores.store import ObjectNotFoundError, ObjectStore

MAX_HISTORY_BYTES = 256 * 1024
"""The limit on the lines of one run; a larger object is not read."""
_READERS = 16
_FILE = re.compile(r"(?P<milliseconds>[0-9]{13})-(?P<digest>[0-9a-f]{64})\.jsonl")


class HistoryTooLongError(ValueError):
    """One run's lines have more than MAX_BYTES."""


def append_history(store: ObjectStore, zone: str, lines: bytes, *, milliseconds: int) -> str:
    """Store one run's lines; the name of the object comes back. Raises StoreUnavailableError, and
    HistoryTooLongError."""
    if len(lines) > MAX_HISTORY_BYTES:
        message = f"{len(lines)} bytes, at most {MAX_HISTORY_BYTES} are kept"
        raise HistoryTooLongError(message)
    name = f"{prefix(zone)}{milliseconds:013d}-{hashlib.sha256(lines).hexdigest()}.jsonl"
    store.write(name, lines)
    return name


def recent_history(store: ObjectStore, zone: str, most: int) -> Sequence[bytes]:
    """The lines of the latest runs, oldest first. What is gone, too large or not what its name says
    is left out. Raises StoreUnavailableError."""
    names = sorted(name for name in store.names(prefix(zone)) if _file(zone, name))[-most:]
    with ThreadPoolExecutor(_READERS) as pool:
        found = pool.map(lambda name: _read(store, zone, name), names)
        return [body for body in found if body is not None]


def prefix(zone: str) -> str:
    return f"{OBJECT_ROOT}/z/{zone}/history/"


def _read(store: ObjectStore, zone: str, name: str) -> bytes | None:
    try:
        body = store.read_part(name, 0, MAX_HISTORY_BYTES + 1)
    except ObjectNotFoundError:
        return None
    if len(body) > MAX_HISTORY_BYTES:
        return None
    matched = _file(zone, name)
    is_whole = matched is not None and hashlib.sha256(body).hexdigest() == matched["digest"]
    return body if is_whole else None


def _file(zone: str, name: str) -> re.Match[str] | None:
    return _FILE.fullmatch(name.removeprefix(prefix(zone)))
