"""A local copy of a remote store's objects whose name proves their content: it is never stale."""

from collections.abc import Sequence
from contextlib import suppress

from tunegate_cache.format.segment import is_proven
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.store import (
    ObjectConflictError,
    ObjectNotFoundError,
    ObjectStore,
    Pointer,
    StoreUnavailableError,
)


class ReadThroughStore:
    """Reads `near` first and keeps there what it had to fetch; lists and writes go to `far`.

    Only content that its name proves is kept and served: a damaged copy is fetched again. Parts and
    pointers prove nothing and are not copied.
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

    def read_part(self, name: str, start: int, size: int) -> bytes:
        return self._far.read_part(name, start, size)

    def read_pointer(self, name: str) -> Pointer:
        return self._far.read_pointer(name)

    def _copy(self, name: str) -> bytes | None:
        try:
            body = self._near.read(name)
        except (ObjectNotFoundError, StoreUnavailableError):
            return None
        if is_proven(name, body):
            return body
        with suppress(StoreUnavailableError):
            self._near.delete(name)
        return None

    def _keep(self, name: str, body: bytes) -> None:
        if not is_proven(name, body):
            return
        # A full local disk costs the copy, not the run.
        with suppress(StoreUnavailableError, ObjectConflictError):
            self._near.write(name, body)


_: type[ObjectStore] = ReadThroughStore
