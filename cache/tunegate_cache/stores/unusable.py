"""A store that never answers but gives the reason: it stands for an unusable plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tunegate_cache.stores.store import MaintainedStore, Pointer, StoreUnavailableError
from tunegate_cache.stores.store_kind import StoreKind


def unusable_kind(reason: str) -> StoreKind:
    """Returns a kind that accepts every address. Each request of its stores fails with `reason`."""
    return StoreKind(
        form="another address",
        accepts=lambda _: True,
        open=lambda _: UnusableStore(reason),
        is_remote=False,
        advice=("repair or uninstall the package that the check names",),
    )


class UnusableStore:
    """Fails each request with the same reason."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def read(self, name: str) -> bytes:
        self._fail()

    def write(self, name: str, body: bytes) -> None:
        self._fail()

    def names(self, prefix: str) -> Sequence[str]:
        self._fail()

    def read_part(self, name: str, start: int, size: int) -> bytes:
        self._fail()

    def read_pointer(self, name: str) -> Pointer:
        self._fail()

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        self._fail()

    def delete(self, name: str) -> None:
        self._fail()

    def _fail(self) -> NoReturn:
        raise StoreUnavailableError(self._reason)


_: type[MaintainedStore] = UnusableStore
