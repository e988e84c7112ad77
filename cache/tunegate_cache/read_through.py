"""A local copy of a remote store's objects: they are immutable, so a copy is never stale."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate_cache.store import ObjectNotFoundError, ObjectStore, StoreUnavailableError


class ReadThroughStore:
    """Reads `near` first and keeps there what it had to fetch; lists and writes go to `far`."""

    def __init__(self, near: ObjectStore, far: ObjectStore) -> None:
        self._near, self._far = near, far

    def read(self, name: str) -> bytes:
        try:
            return self._near.read(name)
        except (ObjectNotFoundError, StoreUnavailableError):
            body = self._far.read(name)
        self._keep(name, body)
        return body

    def write(self, name: str, body: bytes) -> None:
        self._far.write(name, body)
        self._keep(name, body)

    def names(self, prefix: str) -> Sequence[str]:
        return self._far.names(prefix)

    def _keep(self, name: str, body: bytes) -> None:
        try:
            self._near.write(name, body)
        except StoreUnavailableError:
            return  # a full local disk costs the copy, not the run


_: type[ObjectStore] = ReadThroughStore
