"""Holds a store to its contract: whatever else it raises or returns is trouble of the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tunegate_cache.stores.store import (
    MAX_OBJECT_BYTES,
    MaintainedStore,
    ObjectNotFoundError,
    Pointer,
    PointerMovedError,
    StoreUnavailableError,
)

Answer = TypeVar("Answer")


class ContainedStore:
    """Raises only what `ObjectStore` and `MaintainedStore` allow, so that no fault of a store ends
    a run. Messages contain another error's class, not its text, which may hold a secret."""

    def __init__(self, store: MaintainedStore, scheme: str) -> None:
        self._store, self._scheme = store, scheme

    @property
    def remarks(self) -> tuple[str, ...]:
        """Returns what the store has learned about its server, if it reports that."""
        remarks = getattr(self._store, "remarks", ())
        return tuple(map(str, remarks)) if isinstance(remarks, tuple) else ()

    def read(self, name: str) -> bytes:
        return self._body(self._ask(lambda: self._store.read(name)))

    def write(self, name: str, body: bytes) -> None:
        self._ask(lambda: self._store.write(name, body))

    def names(self, prefix: str) -> Sequence[str]:
        return self._ask(lambda: self._listing(self._store.names(prefix), prefix))

    def read_part(self, name: str, start: int, size: int) -> bytes:
        return self._body(self._ask(lambda: self._store.read_part(name, start, size)))

    def read_pointer(self, name: str) -> Pointer:
        pointer = self._ask(lambda: self._store.read_pointer(name))
        if not isinstance(pointer, Pointer):
            raise self._fault("a pointer that is none")
        self._body(pointer.body)
        return pointer

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        self._ask(lambda: self._store.move_pointer(name, body, expected))

    def delete(self, name: str) -> None:
        self._ask(lambda: self._store.delete(name))

    def _ask(self, request: Callable[[], Answer]) -> Answer:
        try:
            return request()
        except (ObjectNotFoundError, PointerMovedError, StoreUnavailableError):
            raise
        except Exception as error:
            raise self._fault(type(error).__name__) from error

    def _body(self, body: object) -> bytes:
        if not isinstance(body, bytes):
            raise self._fault("a body that is no bytes")
        if len(body) > MAX_OBJECT_BYTES:
            raise self._fault(f"an object larger than {MAX_OBJECT_BYTES} bytes")
        return body

    def _listing(self, names: Sequence[str], prefix: str) -> Sequence[str]:
        """Returns only names below the prefix: another zone's records must not be read as this
        one's."""
        if not all(name.startswith(prefix) for name in names):
            raise self._fault("the listing of another place")
        return names

    def _fault(self, problem: str) -> StoreUnavailableError:
        return StoreUnavailableError(f"{self._scheme}: {problem}")


_: type[MaintainedStore] = ContainedStore
