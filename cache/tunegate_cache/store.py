"""The one door to storage. Everything behind it is bytes under string names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

MAX_OBJECT_BYTES = 64 * 1024 * 1024
"""Larger objects are not read: nothing that a run writes comes near."""


class ObjectNotFoundError(LookupError):
    """No object has that name."""


class StoreUnavailableError(Exception):
    """The store did not answer, refused, or answered nonsense. The text carries no secret."""


class StoreTimedOutError(StoreUnavailableError):
    """The store did not answer in its time."""


class StoreBusyError(StoreUnavailableError):
    """The store answers that it is asked too much."""


class AccessDeniedError(StoreUnavailableError):
    """The store answers, but not to us: asking again will not help."""


class ObjectConflictError(StoreUnavailableError):
    """Another body is stored under that name, so this one is not stored."""


class ObjectStore(Protocol):
    """Immutable objects under content-derived names; safe to use from many threads.

    **Write once.** `write` never replaces: the first body under a name stays. Writing the same
    body again is success, writing another is `ObjectConflictError`.
    **Visibility.** After `write` returns, every later `read` and `names` shows the object.
    **Faults.** Anything but a missing name is `StoreUnavailableError`, within the store's time-outs.
    """

    def read(self, name: str) -> bytes: ...
    def write(self, name: str, body: bytes) -> None: ...
    def names(self, prefix: str) -> Sequence[str]: ...
