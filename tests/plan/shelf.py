"""A task index in memory, for stages that ask the cache or hand records in."""

from collections.abc import Callable, Mapping, Sequence

from tunegate.artifacts.tasks import CacheUse
from tunegate_cache.format.records import (
    ExactHit,
    Lookup,
    TransferHit,
    TuningRecord,
    WorkloadKey,
    WorkloadShape,
)


class Shelf:
    """A cache that knows what it is given, takes records only while it is open, and has `own` in
    the zone that it does not believe."""

    def __init__(
        self,
        known: Mapping[WorkloadKey, Lookup] | None = None,
        *,
        own: Mapping[WorkloadKey, ExactHit | TransferHit] | None = None,
        is_open: Callable[[int], bool] = lambda _: True,
    ) -> None:
        self.records: list[TuningRecord] = []
        self.asked: list[WorkloadKey] = []
        self.known, self.own = known or {}, own or {}
        self.other_targets: frozenset[str] = frozenset()
        self.on_their_way = 0
        self._is_open, self._calls = is_open, 0

    def lookup(
        self,
        wanted: Sequence[tuple[WorkloadKey, WorkloadShape]],
        fastest: Mapping[WorkloadKey, int] | None = None,
    ) -> Mapping[WorkloadKey, Lookup]:
        self.asked += [key for key, _ in wanted]
        return self.known

    def claims(
        self,
        wanted: Sequence[tuple[WorkloadKey, WorkloadShape]],
        fastest: Mapping[WorkloadKey, int] | None = None,
    ) -> Mapping[WorkloadKey, ExactHit | TransferHit]:
        return {key: self.own[key] for key, _ in wanted if key in self.own}

    def standings(self, keys: Sequence[WorkloadKey]) -> Mapping[WorkloadKey, Lookup]:
        return {key: self.known[key] for key in keys if key in self.known}

    def targets(self) -> frozenset[str]:
        return self.other_targets

    def publish(self, records: Sequence[TuningRecord]) -> bool:
        self._calls += 1
        if not self._is_open(self._calls):
            return False
        self.records += records
        return True

    def enqueue(self, records: Sequence[TuningRecord]) -> bool:
        return self.publish(records)

    def flush(self, seconds: float) -> int:
        assert seconds < 5
        return self.on_their_way

    def use(self) -> CacheUse:
        return CacheUse(location="memory", zone="main", mode="rw")
