"""Counts the use of the cache in one run, and its price."""

from collections import Counter
from collections.abc import Mapping

from tunegate_cache.format.records import MissReason


class CacheStatistics:
    """Requests by verb (`get`, `put`, `list`), answers, and the lines worth showing once each.

    Requests and bytes are those that went to the store: a local copy costs none. `served` counts
    answers by the zone and repository of the best record; outside of CI the repository is unknown.
    """

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.misses: Counter[MissReason] = Counter()
        self.refused: Counter[str] = Counter()
        self.served: Counter[tuple[str, str]] = Counter()
        self.exact = 0
        self.transfer = 0
        self.bytes_read = 0
        self.bytes_written = 0
        self.seconds = 0.0
        self._notes: dict[str, None] = {}

    def note(self, text: str) -> None:
        self._notes.setdefault(text)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)


# Costs of requests to a store, at list prices.


def usd_of(requests: Mapping[str, int], usd_per_1000: Mapping[str, float]) -> float:
    """Returns the price of `requests`, counted by verb."""
    return sum(usd_per_1000.get(verb, 0.0) * count / 1000 for verb, count in requests.items())
