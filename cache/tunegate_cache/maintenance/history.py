"""The history of runs, one small object for each: JSON lines under a zone, never changed, never
joined.

ms1/z/<zone>/history/<milliseconds13>-<sha256>.jsonl

Lines are somebody's words: whoever may write to the zone may write any. They are for people to look
at, and nothing is built or decided by them.
"""

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from functools import partial

from tunegate_cache.format.names import OBJECT_ROOT
from tunegate_cache.format.revocation import SKEW_SECONDS
from tunegate_cache.stores.gather_with_deadline import Trouble, gather_with_deadline
from tunegate_cache.stores.store import ObjectNotFoundError, ObjectStore, StoreTimedOutError

_FILE = re.compile(r"[0-9]{13}-[0-9a-f]{64}\.jsonl")


def history_name(zone: str, lines: bytes, *, milliseconds: int) -> str:
    """Returns the name of the object of one run's lines. Raises LinesTooLongError."""
    return lines_name(_start(zone, milliseconds), lines)


def recent_history(store: ObjectStore, zone: str, most: int, now: int) -> Mapping[str, bytes]:
    """Returns the lines of the latest runs by object name, oldest first, without objects that are
    gone, too large, or different from their name. Names dated more than a day after `now` (seconds
    since 1970) count as the oldest: they would push out the real ones. Raises
    StoreUnavailableError."""
    start, latest = prefix(zone), _start(zone, 1000 * (now + SKEW_SECONDS))
    names = (n for n in store.names(start) if _FILE.fullmatch(n.removeprefix(start)))
    return read_lines(store, sorted(names, key=lambda name: (name <= latest, name))[-most:])


def _start(zone: str, milliseconds: int) -> str:
    return f"{prefix(zone)}{milliseconds:013d}"


def prefix(zone: str) -> str:
    return f"{OBJECT_ROOT}/z/{zone}/history/"


# Small objects of JSON lines: created once, never changed, each with the digest of its bytes at
# the end of its name.

MAX_LINES_BYTES = 256 * 1024
"""The largest object; a larger one is not read."""
_MOST_SECONDS = 600.0
_DIGEST = re.compile(r"-(?P<digest>[0-9a-f]{64})\.jsonl\Z")


class LinesTooLongError(ValueError):
    """The lines of one object have more than MAX_LINES_BYTES."""


def lines_name(start: str, lines: bytes) -> str:
    """Returns the name of these lines' object, which begins with `start`. Raises
    LinesTooLongError."""
    if len(lines) > MAX_LINES_BYTES:
        raise LinesTooLongError(f"{len(lines)} bytes, at most {MAX_LINES_BYTES} are kept")
    return f"{start}-{hashlib.sha256(lines).hexdigest()}.jsonl"


def write_lines(store: ObjectStore, start: str, lines: bytes) -> str:
    """Stores the lines in an object whose name begins with `start`, and returns its name. Raises
    StoreUnavailableError, and LinesTooLongError."""
    name = lines_name(start, lines)
    store.write(name, lines)
    return name


def read_lines(store: ObjectStore, names: Sequence[str]) -> Mapping[str, bytes]:
    """Returns the lines of each object by name, in this order, without objects that are gone, too
    large, or different from their name. Raises StoreUnavailableError."""
    bodies: dict[str, bytes | None] = {}
    requests = {name: partial(_read_if_whole, store, name) for name in names}
    deadline = time.monotonic() + _MOST_SECONDS
    for name, body in gather_with_deadline(requests, deadline=deadline, monotonic=time.monotonic):
        if isinstance(body, Trouble):
            raise body  # nobody waits for the others: a server that hangs once hangs again
        bodies[name] = body
    if len(bodies) < len(requests):
        message = f"{len(requests) - len(bodies)} objects were not read in {_MOST_SECONDS:.0f} s"
        raise StoreTimedOutError(message)
    return {name: body for name in requests if (body := bodies[name]) is not None}


def _read_if_whole(store: ObjectStore, name: str) -> bytes | None:
    try:
        body = store.read_part(name, 0, MAX_LINES_BYTES + 1)
    except ObjectNotFoundError:
        return None
    match = _DIGEST.search(name) if len(body) <= MAX_LINES_BYTES else None
    is_whole = match is not None and hashlib.sha256(body).hexdigest() == match["digest"]
    return body if is_whole else None
