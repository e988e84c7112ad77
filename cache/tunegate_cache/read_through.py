"""A local copy of a remote store's segments: they are immutable, so a copy is never stale."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate_cache.files import FileStore
from tunegate_cache.names import parse_segment
from tunegate_cache.segment import digest
from tunegate_cache.store import ObjectNotFoundError, ObjectStore, StoreUnavailableError


class ReadThroughStore:
    """Reads `near` first and keeps there what it had to fetch; lists and writes go to `far`.

    Only what its name proves is kept and only what its name proves is served: a damaged copy is
    fetched again, and objects that are no segments are not copied.
    """

    def __init__(self, near: FileStore, far: ObjectStore) -> None:
        self._near, self._far = near, far

    def read(self, name: str) -> bytes:
        copy = self._copy(name)
        if copy is not None:
            return copy
        body = self._far.read(name)
        self._keep(name, body)
        return body

    def write(self, name: str, body: bytes) -> None:
        self._far.write(name, body)
        self._keep(name, body)

    def names(self, prefix: str) -> Sequence[str]:
        return self._far.names(prefix)

    def _copy(self, name: str) -> bytes | None:
        try:
            body = self._near.read(name)
        except (ObjectNotFoundError, StoreUnavailableError):
            return None
        if _is_proven(name, body):
            return body
        self._near.remove(name)
        return None

    def _keep(self, name: str, body: bytes) -> None:
        if not _is_proven(name, body):
            return
        try:
            self._near.write(name, body)
        except StoreUnavailableError:
            return  # a full local disk costs the copy, not the run


def _is_proven(name: str, body: bytes) -> bool:
    segment = parse_segment(name)
    return segment is not None and segment.digest == digest(body)


_: type[ObjectStore] = ReadThroughStore
