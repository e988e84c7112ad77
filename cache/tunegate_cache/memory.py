"""A store in memory, for tests and for `memory:`."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate_cache.store import ObjectNotFoundError, ObjectStore


class MemoryStore:
    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    def read(self, name: str) -> bytes:
        try:
            return self._objects[name]
        except KeyError:
            raise ObjectNotFoundError(name) from None

    def write(self, name: str, body: bytes) -> None:
        self._objects.setdefault(name, body)

    def names(self, prefix: str) -> Sequence[str]:
        return sorted(name for name in self._objects if name.startswith(prefix))


_: type[ObjectStore] = MemoryStore
