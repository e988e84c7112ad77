"""A store in memory, for tests and for `memory:`."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate_cache.store import ObjectConflictError, ObjectNotFoundError, ObjectStore


class MemoryStore:
    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    def read(self, name: str) -> bytes:
        try:
            return self._objects[name]
        except KeyError:
            raise ObjectNotFoundError(name) from None

    def write(self, name: str, body: bytes) -> None:
        if self._objects.setdefault(name, body) != body:
            raise ObjectConflictError(f"memory: {name} holds another body")

    def names(self, prefix: str) -> Sequence[str]:
        return sorted(name for name in tuple(self._objects) if name.startswith(prefix))


_: type[ObjectStore] = MemoryStore
