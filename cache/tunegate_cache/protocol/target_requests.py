"""The requests to a store for one target, until one deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import msgspec

from tunegate_cache.protocol.read_trouble import TargetTrouble
from tunegate_cache.stores.gather_with_deadline import gather_with_deadline
from tunegate_cache.stores.store import ObjectNotFoundError

_Asked = TypeVar("_Asked")
_T = TypeVar("_T")


class StaleListingError(Exception):
    """Something listed is gone: a compaction and a collection ran in between."""


class TargetRequests(msgspec.Struct, frozen=True, kw_only=True):
    """Notes failures as trouble of the target. A missing object is trouble, too, or if
    `is_repeatable` a reason to list again."""

    target: str
    deadline: float
    monotonic: Callable[[], float]
    trouble: TargetTrouble
    is_repeatable: bool = False

    def answers(self, asked: Mapping[_Asked, Callable[[], _T]]) -> Iterator[tuple[_Asked, _T]]:
        """Yields each answer as it comes. Raises StaleListingError."""
        answered = 0
        for name, answer in gather_with_deadline(
            asked, deadline=self.deadline, monotonic=self.monotonic
        ):
            if self.is_over():
                break  # an answer in time is no reason to go on: unpacking takes time, too
            answered += 1
            if isinstance(answer, ObjectNotFoundError) and self.is_repeatable:
                raise StaleListingError
            if isinstance(answer, Exception):
                self.trouble.unavailable()
            else:
                yield name, answer
        if answered < len(asked):
            self.trouble.late()

    def is_over(self) -> bool:
        return self.monotonic() > self.deadline

    def repeatable(self) -> TargetRequests:
        """Returns the same requests, but a missing object raises StaleListingError."""
        return msgspec.structs.replace(self, is_repeatable=True)
