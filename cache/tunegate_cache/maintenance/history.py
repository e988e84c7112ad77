"""What runs have said, one small object for each: JSON lines under a
zone, never changed, never joined.

ms1/z/<zone>/history/<milliseconds13>-<sha256>.jsonl

Lines are somebody's words: whoever may write to the zone may write any. They are for people to look
at, and nothing is built or decided by them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tunegate_cache.format.names import OBJECT_ROOT
from tunegate_cache.maintenance.lines import read_lines, write_lines
from tunegate_cache.stores.store import ObjectStore

_FILE = re.compile(r"[0-9]{13}-[0-9a-f]{64}\.jsonl")


def append_history(store: ObjectStore, zone: str, lines: bytes, *, milliseconds: int) -> str:
    """Store one run's lines; the name of the object comes back. Raises StoreUnavailableError, and
    LinesTooLongError."""
    return write_lines(store, f"{prefix(zone)}{milliseconds:013d}", lines)


def recent_history(store: ObjectStore, zone: str, most: int) -> Sequence[bytes]:
    """The lines of the latest runs, oldest first. What is gone, too large or not what its name says
    is left out. Raises StoreUnavailableError."""
    start = prefix(zone)
    names = (n for n in store.names(start) if _FILE.fullmatch(n.removeprefix(start)))
    return read_lines(store, sorted(names)[-most:])


def prefix(zone: str) -> str:
    return f"{OBJECT_ROOT}/z/{zone}/history/"
