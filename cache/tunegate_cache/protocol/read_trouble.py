"""Failures of reading, kept as reasons for misses."""

from __future__ import annotations

from collections.abc import Callable

from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.format.records import MissReason
from tunegate_cache.format.refused_line import RefusedLine


class ReadTrouble:
    """Trouble by target, and by workload if known."""

    def __init__(self, statistics: CacheStatistics) -> None:
        self._statistics = statistics
        self._of_targets: dict[str, TargetTrouble] = {}
        self._refused: set[str] = set()

    def of(self, target: str) -> TargetTrouble:
        """Returns the object that notes trouble with this target."""
        return self._of_targets.setdefault(target, TargetTrouble(self._statistics, self.refused))

    def refused(self, refused: RefusedLine, count: int = 1) -> None:
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

    def unavailable(self) -> None:
        self.is_unavailable = True

    def late(self) -> None:
        self.is_unavailable = True
        self._statistics.note("cache: not everything could be read in time")

    def uncompacted(self, segments: int) -> None:
        self.is_unavailable = True
        self._statistics.note(
            f"cache: {segments} segments wait for a compaction, so the oldest are not read; "
            f"run tunegate cache compact"
        )

    def corrupt(self, what: str, why: str) -> None:
        self.is_corrupt = True
        self._statistics.corrupt_segments += 1
        self._statistics.note(f"cache: {what} is corrupt ({why})")

    def unsigned(self, what: str) -> None:
        self.is_corrupt = True
        self._statistics.untrusted += 1
        self._statistics.note(f"cache: {what} is not signed by a trusted key")
