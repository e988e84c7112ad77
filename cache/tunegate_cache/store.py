"""The one door to storage. Everything behind it is bytes under string names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class ObjectNotFoundError(LookupError):
    """No object has that name."""


class StoreUnavailableError(Exception):
    """The store did not answer, refused, or answered nonsense. The text carries no secret."""


class ObjectStore(Protocol):
    """Immutable objects under content-derived names.

    **Write once.** `write` never replaces: the first body under a name stays, and writing a
    name that exists is success, because equal names mean equal bodies.
    **Visibility.** After `write` returns, every later `read` and `names` shows the object.
    **Faults.** Anything but a missing name is `StoreUnavailableError`, within the store's time-outs.
    """

    def read(self, name: str) -> bytes: ...
    def write(self, name: str, body: bytes) -> None: ...
    def names(self, prefix: str) -> Sequence[str]: ...
