"""The history in the shared cache, as structs."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

import msgspec

from tunegate.artifacts.artifact_io import NOT_JSON
from tunegate.artifacts.history import HistoryEntry
from tunegate.config import CacheConfig
from tunegate_cache.format.revocation import SKEW_SECONDS
from tunegate_cache.maintenance import history
from tunegate_cache.stores.gather_with_deadline import Trouble, gather_with_deadline
from tunegate_cache.stores.store import MaintainedStore, ObjectStore, StoreUnavailableError

WRITE_SECONDS = 3.0
_MOST_AT_ONCE = 15
_LATER = "the next run on this machine writes it"


class ReadHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The history's lines, oldest first, and how many were rejected: of another format, or dated in
    the future."""

    entries: tuple[HistoryEntry, ...]
    refused: int = 0


def write_history(
    store: ObjectStore,
    config: CacheConfig,
    entries: Sequence[HistoryEntry],
    milliseconds: int,
    spool: MaintainedStore,
) -> str:
    """Appends entries to the history. Returns why nothing was written, or an empty string: a run
    does not fail because of its history. What the store does not take stays in `spool`, and the
    next run delivers it."""
    if not entries or config.mode != "rw":
        return ""
    lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
    problem = f"the history of {config.url} was not written"
    try:
        name = history.history_name(config.zone, lines, milliseconds=milliseconds)
    except history.LinesTooLongError as error:
        return f"{problem} ({error})"
    waiting = {name: lines, **_waiting(spool, config.zone, milliseconds // 1000)}
    with suppress(StoreUnavailableError):  # a full disk: then this is the only attempt
        spool.write(name, lines)
    answers = _deliver(store, spool, waiting)
    if name not in answers:
        return f"{problem} (no answer in {WRITE_SECONDS:g} s); {_LATER}"
    answer = answers[name]
    return f"{problem} ({answer}); {_LATER}" if isinstance(answer, Exception) else ""


def _waiting(spool: MaintainedStore, zone: str, now: int) -> Mapping[str, bytes]:
    """Returns the latest lines that earlier runs could not deliver."""
    try:
        return history.recent_history(spool, zone, _MOST_AT_ONCE, now)
    except StoreUnavailableError:
        return {}


def _deliver(
    store: ObjectStore, spool: MaintainedStore, waiting: Mapping[str, bytes]
) -> Mapping[str, Trouble | None]:
    """Sends waiting objects and forgets the delivered ones. Returns the store's trouble with each
    (None: delivered), as far as it answered in time."""
    requests = {name: partial(store.write, name, body) for name, body in waiting.items()}
    deadline = time.monotonic() + WRITE_SECONDS
    answers = dict(gather_with_deadline(requests, deadline=deadline, monotonic=time.monotonic))
    for name, answer in answers.items():
        if not isinstance(answer, Exception):
            with suppress(StoreUnavailableError):
                spool.delete(name)
    return answers


def read_history(store: ObjectStore, zone: str, most: int, now: int) -> ReadHistory:
    """Returns the lines of the latest runs. A line that is not ours, exceeds a limit of its type,
    or is dated more than a day after `now` (seconds since 1970), is rejected. Raises
    StoreUnavailableError."""
    bodies = history.recent_history(store, zone, most, now).values()
    lines = [line for body in bodies for line in body.splitlines()]
    entries = [entry for entry in _entries(lines) if entry.at <= now + SKEW_SECONDS]
    entries.sort(key=lambda entry: (entry.at, entry.model, entry.target))
    return ReadHistory(entries=tuple(entries), refused=len(lines) - len(entries))


def _entries(lines: Sequence[bytes]) -> Iterator[HistoryEntry]:
    decoder = msgspec.json.Decoder(HistoryEntry)
    for line in lines:
        try:
            yield decoder.decode(line)
        except NOT_JSON:
            continue
