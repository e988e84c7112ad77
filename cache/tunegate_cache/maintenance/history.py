"""The history of runs, one small object for each: JSON lines under a zone, never changed, never
joined.

ms1/z/<zone>/history/<milliseconds13>-<sha256>.jsonl

Lines are somebody's words: whoever may write to the zone may write any. They are for people to look
at, and nothing is built or decided by them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tunegate_cache.format.names import OBJECT_ROOT
from tunegate_cache.maintenance.lines import lines_name, read_lines, write_lines
from tunegate_cache.stores.store import ObjectStore

_FILE = re.compile(r"[0-9]{13}-[0-9a-f]{64}\.jsonl")


def append_history(store: ObjectStore, zone: str, lines: bytes, *, milliseconds: int) -> str:
    """Stores one run's lines, and returns the object's name. Raises StoreUnavailableError, and
    LinesTooLongError."""
    return write_lines(store, _start(zone, milliseconds), lines)


def history_name(zone: str, lines: bytes, *, milliseconds: int) -> str:
    """Returns the name of the object of one run's lines. Raises LinesTooLongError."""
    return lines_name(_start(zone, milliseconds), lines)


def recent_history(store: ObjectStore, zone: str, most: int) -> Mapping[str, bytes]:
    """Returns the lines of the latest runs by object name, oldest first, without objects that are
    gone, too large, or different from their name. Raises StoreUnavailableError."""
    start = prefix(zone)
    names = (n for n in store.names(start) if _FILE.fullmatch(n.removeprefix(start)))
    return read_lines(store, sorted(names)[-most:])


def _start(zone: str, milliseconds: int) -> str:
    return f"{prefix(zone)}{milliseconds:013d}"


def prefix(zone: str) -> str:
    return f"{OBJECT_ROOT}/z/{zone}/history/"
