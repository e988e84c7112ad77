"""The history in the shared cache, as structs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from tunegate.artifacts.history import HistoryEntry
from tunegate.config import CacheConfig
from tunegate_cache.maintenance.history import HistoryTooLongError, append_history, recent_history
from tunegate_cache.stores.gather_with_deadline import gather_with_deadline
from tunegate_cache.stores.store import ObjectStore

WRITE_SECONDS = 3.0


def write_history(
    store: ObjectStore, config: CacheConfig, entries: Sequence[HistoryEntry], milliseconds: int
) -> str:
    """Why nothing was written, or an empty string: a run does not fail with its history."""
    if not entries or config.mode != "rw":
        return ""
    lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
    told = f"the history of {config.url} was not written"
    asked = {
        config.zone: partial(append_history, store, config.zone, lines, milliseconds=milliseconds)
    }
    deadline = time.monotonic() + WRITE_SECONDS
    try:
        answers = dict(gather_with_deadline(asked, deadline=deadline, monotonic=time.monotonic))
    except HistoryTooLongError as error:
        return f"{told} ({error})"
    if not answers:
        return f"{told} (no answer in {WRITE_SECONDS:g} s)"
    (answer,) = answers.values()
    return f"{told} ({answer})" if isinstance(answer, Exception) else ""


def read_history(store: ObjectStore, zone: str, most: int) -> Sequence[HistoryEntry]:
    """The lines of the latest runs, oldest first; a line that is none of ours is left out. Raises
    StoreUnavailableError."""
    found = [entry for body in recent_history(store, zone, most) for entry in _entries(body)]
    return sorted(found, key=lambda entry: (entry.at, entry.model, entry.target))


def _entries(body: bytes) -> Iterator[HistoryEntry]:
    for line in body.splitlines():
        try:
            yield msgspec.json.decode(line, type=HistoryEntry)
        except (msgspec.DecodeError, RecursionError):
            continue
