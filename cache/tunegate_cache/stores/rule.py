"""A promise of a store, checked by doing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

Store_contra = TypeVar("Store_contra", contravariant=True)


class Rule(msgspec.Struct, Generic[Store_contra], frozen=True, kw_only=True):
    """`problem` acts on objects under a prefix of the store, and returns what is wrong, '' if the
    rule is kept. Without the needed rules the cache cannot work; without the others it works, and
    `advice` says what to mind."""

    name: str
    is_needed: bool
    problem: Callable[[Store_contra, str], str]
    advice: str = ""


def raises(kind: type[Exception], act: Callable[[], object]) -> bool:
    """Returns whether `act` raises this exception."""
    try:
        act()
    except kind:
        return True
    return False
