"""The only interface to storage. Everything behind it is bytes under string names."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

MAX_OBJECT_BYTES = 64 * 1024 * 1024
"""Larger objects are not read: nothing that a run writes comes near."""


class ObjectNotFoundError(LookupError):
    """No object has that name."""


class StoreUnavailableError(Exception):
    """The store did not answer, refused, or answered nonsense. The text contains no secret.
    `advice` is what to do about it, if the store knows; `listed` are the names that a listing found
    beside what it could not read."""

    def __init__(
        self, text: str = "", *, advice: tuple[str, ...] = (), listed: Sequence[str] = ()
    ) -> None:
        super().__init__(text)
        self.advice, self.listed = advice, listed


class StoreTimedOutError(StoreUnavailableError):
    """The store did not answer in time."""


class StoreBusyError(StoreUnavailableError):
    """The store asks for fewer requests."""


class AccessDeniedError(StoreUnavailableError):
    """The store refuses us: trying again will not help."""


class UnsupportedRequestError(StoreUnavailableError):
    """The store does not know this kind of request."""


class ObjectConflictError(StoreUnavailableError):
    """Another body is stored under that name, so this one is not stored."""


class RefusedConditionError(ObjectConflictError):
    """The store says that the object is not as the request's condition wants it."""


class PointerMovedError(Exception):
    """A pointer was moved since it was read."""


class Pointer(msgspec.Struct, frozen=True):
    """The body of a pointer, and the store's tag of this version of it."""

    body: bytes
    tag: str


class ObjectStore(Protocol):
    """Immutable objects under content-derived names; safe to use from many threads.

    **Write once.** `write` never replaces: the first body under a name stays. Writing the same
    body again is success, writing another is `ObjectConflictError`.

    **Visibility.** After `write` returns, every later `read` and `names` shows the object.

    **Faults.** Anything but a missing name is `StoreUnavailableError`, within the time-outs.
    """

    def read(self, name: str) -> bytes: ...
    def write(self, name: str, body: bytes) -> None: ...
    def names(self, prefix: str) -> Sequence[str]: ...

    def read_part(self, name: str, start: int, size: int) -> bytes:
        """Returns `size` bytes of an object from `start`, fewer if it ends before."""
        ...

    def read_pointer(self, name: str) -> Pointer:
        """Returns a pointer, one of the few objects that change. Raises ObjectNotFoundError before
        its first move."""
        ...


class MaintainedStore(ObjectStore, Protocol):
    """A store with the operations of compaction and collection, which no ordinary run may use."""

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        """Replaces the version with tag `expected` (None: there must be none yet). Raises
        PointerMovedError if the current one is another. A store whose conditions do not work never
        raises it: the protocol must be right even then."""
        ...

    def delete(self, name: str) -> None:
        """Deletes the object; a missing name is success."""
        ...
