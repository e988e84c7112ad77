"""Tasks that somebody measured for the cost models of others: one small object for each.

ms1/z/exp/tasks/<device12>-<layer16>-<sha256>.jsonl

`device` is a digest of the device's name and its threads, so that one listing says which layers are
measured there already. Lines are somebody's words: they are data to fit a model to, and no schedule
of them is built or served.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from tunegate_cache.format.names import OBJECT_ROOT
from tunegate_cache.maintenance.history import read_lines, write_lines
from tunegate_cache.stores.store import ObjectStore

EXPERIENCE_ZONE = "exp"
MAX_TASKS = 20_000
"""The most objects that are read, the first by name."""
_PREFIX = f"{OBJECT_ROOT}/z/{EXPERIENCE_ZONE}/tasks/"
_LAYER_DIGITS = 16
_DEVICE_DIGITS = 12
_FILE = re.compile(
    rf"(?P<device>[0-9a-f]{{{_DEVICE_DIGITS}}})-(?P<layer>[0-9a-f]{{{_LAYER_DIGITS}}})"
    r"-[0-9a-f]{64}\.jsonl"
)


def device_digest(name: str, threads: int) -> str:
    """Equal for machines whose times may be compared."""
    return hashlib.sha256(f"{name}/{threads}".encode()).hexdigest()[:_DEVICE_DIGITS]


def append_task(store: ObjectStore, line: bytes, *, device: str, layer: str) -> str:
    """Store one task; the name of the object comes back. Raises StoreUnavailableError, and
    LinesTooLongError."""
    return write_lines(store, f"{_PREFIX}{device}-{layer[:_LAYER_DIGITS]}", line)


def known_layers(store: ObjectStore, device: str) -> frozenset[str]:
    """The layers that were measured on this device. Raises StoreUnavailableError."""
    files = (_FILE.fullmatch(name.removeprefix(_PREFIX)) for name in store.names(_PREFIX))
    return frozenset(file["layer"] for file in files if file and file["device"] == device)


def all_tasks(store: ObjectStore) -> Sequence[bytes]:
    """The lines of all tasks, of every device. Raises StoreUnavailableError."""
    names = [n for n in store.names(_PREFIX) if _FILE.fullmatch(n.removeprefix(_PREFIX))]
    return [*read_lines(store, sorted(names)[:MAX_TASKS]).values()]
