"""What could not be read, remembered to give misses their reason."""

from __future__ import annotations

from tunegate_cache.format.cache_statistics import CacheStatistics
from tunegate_cache.format.record_codec import RefusedLine
from tunegate_cache.format.records import MissReason


class ReadTrouble:
    """Trouble by target, and by workload where that is known."""

    def __init__(self, statistics: CacheStatistics) -> None:
        self._statistics = statistics
        self._unavailable: set[str] = set()
        self._corrupt: set[str] = set()
        self._rejected: set[str] = set()

    def unavailable(self, target: str) -> None:
        self._unavailable.add(target)

    def late(self, target: str) -> None:
        self._unavailable.add(target)
        self._statistics.note("cache: not everything could be read in time")

    def corrupt(self, target: str, what: str, why: str) -> None:
        self._corrupt.add(target)
        self._statistics.corrupt_segments += 1
        self._statistics.note(f"cache: {what} is corrupt ({why})")

    def unsigned(self, target: str, what: str) -> None:
        self._corrupt.add(target)
        self._statistics.untrusted += 1
        self._statistics.note(f"cache: {what} is not signed by a trusted key")

    def uncompacted(self, target: str, segments: int) -> None:
        self._unavailable.add(target)
        self._statistics.note(
            f"cache: {segments} segments wait for a compaction, so the oldest are not read; "
            f"run tunegate cache compact"
        )

    def rejected(self, refused: RefusedLine, count: int = 1) -> None:
        self._statistics.refused[refused.reason] += count
        self._rejected.add(refused.workload)

    def miss_reason(self, workload: str, target: str) -> MissReason:
        """The likeliest reason why nothing was found."""
        if target in self._unavailable:
            return "store-unavailable"
        if workload in self._rejected:
            return "rejected"
        return "corrupt" if target in self._corrupt else "absent"
