"""A store in memory, for tests and for `memory:`."""

import hashlib
import threading
from collections.abc import Sequence

from tunegate_cache.stores.store import (
    MaintainedStore,
    ObjectConflictError,
    ObjectNotFoundError,
    Pointer,
    PointerMovedError,
)
from tunegate_cache.stores.store_kind import StoreKind


class MemoryStore:
    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}
        self._moving = threading.Lock()

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

    def read_part(self, name: str, start: int, size: int) -> bytes:
        return self.read(name)[start : start + size]

    def read_pointer(self, name: str) -> Pointer:
        body = self.read(name)
        return Pointer(body, hashlib.sha256(body).hexdigest())

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        with self._moving:
            current = self._objects.get(name)
            tag = None if current is None else hashlib.sha256(current).hexdigest()
            if tag != expected:
                raise PointerMovedError(name)
            self._objects[name] = body

    def delete(self, name: str) -> None:
        self._objects.pop(name, None)


_: type[MaintainedStore] = MemoryStore
MEMORY = StoreKind(
    form="memory:",
    accepts=lambda address: address.url == "memory:",
    open=lambda _: MemoryStore(),
    is_remote=False,
)
