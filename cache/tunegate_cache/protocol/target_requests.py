"""The requests to a store for one target, until one deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import msgspec

from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.format.record_codec import RefusedLine
from tunegate_cache.format.records import MissReason, StoredRecord, TuningRecord
from tunegate_cache.format.revocation import Revocation, counted
from tunegate_cache.stores.gather_with_deadline import gather_with_deadline
from tunegate_cache.stores.store import ObjectNotFoundError

MISDATED = "records dated after this machine's clock count as the oldest; check the clock"
_Asked = TypeVar("_Asked")
_T = TypeVar("_T")


class StaleListingError(Exception):
    """Something listed is gone: a compaction and a collection ran in between."""


class TargetRequests(msgspec.Struct, frozen=True, kw_only=True):
    """Notes failures as trouble of the target. A missing object is trouble, too, or if
    `is_repeatable` a reason to list again. Dates after `latest` (seconds since 1970) do not
    count."""

    target: str
    deadline: float
    monotonic: Callable[[], float]
    trouble: TargetTrouble
    latest: int
    is_repeatable: bool = False

    def answers(self, requests: Mapping[_Asked, Callable[[], _T]]) -> Iterator[tuple[_Asked, _T]]:
        """Yields each answer as it comes. Raises StaleListingError."""
        answered = 0
        for name, answer in gather_with_deadline(
            requests, deadline=self.deadline, monotonic=self.monotonic
        ):
            if self.is_over():
                break  # an answer in time is no reason to go on: unpacking takes time, too
            answered += 1
            if isinstance(answer, ObjectNotFoundError):
                if self.is_repeatable:
                    raise StaleListingError
                self.trouble.corrupt(str(answer), "it is missing; run tunegate cache doctor")
            elif isinstance(answer, Exception):
                self.trouble.is_unavailable = True
            else:
                yield name, answer
        if answered < len(requests):
            self.trouble.note_late()

    def counted(
        self, stored: StoredRecord, revoked: tuple[Revocation, ...]
    ) -> Iterator[TuningRecord]:
        """Yields the record as it counts, nothing if it is revoked."""
        found = counted(stored, revoked, self.latest)
        if found is not None:
            if found is not stored:
                self.trouble.note_misdated()
            yield found.record

    def is_over(self) -> bool:
        return self.monotonic() > self.deadline

    def repeatable(self) -> TargetRequests:
        """Returns the same requests, but a missing object raises StaleListingError."""
        return msgspec.structs.replace(self, is_repeatable=True)


# Failures of reading, kept as reasons for misses.


class ReadTrouble:
    """Trouble by target, and by workload if known."""

    def __init__(self, statistics: CacheStatistics) -> None:
        self._statistics = statistics
        self._of_targets: dict[str, TargetTrouble] = {}
        self._refused: set[str] = set()

    def of(self, target: str) -> TargetTrouble:
        """Returns the object that notes trouble with this target."""
        return self._of_targets.setdefault(
            target, TargetTrouble(self._statistics, self.note_refused)
        )

    def note_refused(self, refused: RefusedLine, count: int = 1) -> None:
        """Notes records that were read but must not be used."""
        self._statistics.refused[refused.reason] += count
        self._refused.add(refused.workload)

    def miss_reason(self, workload: str, target: str) -> MissReason:
        """Returns the likeliest reason why nothing was found."""
        trouble = self.of(target)
        if trouble.is_unavailable:
            return "store-unavailable"
        if workload in self._refused:
            return "rejected"
        return "corrupt" if trouble.is_corrupt else "absent"


class TargetTrouble:
    """Trouble with what is stored for one target."""

    def __init__(self, statistics: CacheStatistics, refused: Callable[[RefusedLine], None]) -> None:
        self._statistics = statistics
        self.refused = refused
        self.is_unavailable = self.is_corrupt = False

    def note_late(self) -> None:
        self.is_unavailable = True
        self._statistics.note("cache: not everything could be read in time")

    def note_uncompacted(self, segments: int) -> None:
        self.is_unavailable = True
        self._statistics.note(
            f"cache: {segments} segments wait for a compaction, so the oldest are not read; "
            f"run tunegate cache compact"
        )

    def note_misdated(self) -> None:
        self._statistics.note(f"cache: {MISDATED}")

    def corrupt(self, name: str, why: str) -> None:
        self.is_corrupt = True
        self._statistics.note(f"cache: {name} cannot be used ({why})")

    def note_unsigned(self, name: str) -> None:
        self.is_corrupt = True
        self._statistics.note(f"cache: {name} is not signed by a trusted key")
