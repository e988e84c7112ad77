"""A store that can only be read: what an untrusted run gets."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate_cache.stores.store import AccessDeniedError, ObjectStore, Pointer


class ReadOnlyStore:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def read(self, name: str) -> bytes:
        return self._store.read(name)

    def write(self, name: str, body: bytes) -> None:
        message = "this run may read the cache but not write to it"
        raise AccessDeniedError(message)

    def names(self, prefix: str) -> Sequence[str]:
        return self._store.names(prefix)

    def read_part(self, name: str, start: int, size: int) -> bytes:
        return self._store.read_part(name, start, size)

    def read_pointer(self, name: str) -> Pointer:
        return self._store.read_pointer(name)


_: type[ObjectStore] = ReadOnlyStore
