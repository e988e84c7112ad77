"""The history in the shared cache, as structs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from tunegate.artifacts.history import HistoryEntry
from tunegate.config import CacheConfig
from tunegate_cache.maintenance.history import append_history, recent_history
from tunegate_cache.maintenance.lines import LinesTooLongError
from tunegate_cache.stores.gather_with_deadline import gather_with_deadline
from tunegate_cache.stores.store import ObjectStore

WRITE_SECONDS = 3.0


class ReadHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The lines, oldest first, and how many were refused."""

    entries: tuple[HistoryEntry, ...]
    refused: int = 0


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
    except LinesTooLongError as error:
        return f"{told} ({error})"
    if not answers:
        return f"{told} (no answer in {WRITE_SECONDS:g} s)"
    (answer,) = answers.values()
    return f"{told} ({answer})" if isinstance(answer, Exception) else ""


def read_history(store: ObjectStore, zone: str, most: int) -> ReadHistory:
    """The lines of the latest runs. A line that is none of ours, or breaks a limit of its type, is
    refused. Raises StoreUnavailableError."""
    lines = [line for body in recent_history(store, zone, most) for line in body.splitlines()]
    found = list(_entries(lines))
    found.sort(key=lambda entry: (entry.at, entry.model, entry.target))
    return ReadHistory(entries=tuple(found), refused=len(lines) - len(found))


def _entries(lines: Sequence[bytes]) -> Iterator[HistoryEntry]:
    decoder = msgspec.json.Decoder(HistoryEntry)
    for line in lines:
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, RecursionError):
            continue
