"""A store in memory and what teams do with it: publish, compact, collect, look up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from tests.support.tuning_caches import cache_over
from tests.support.tuning_records import TARGET, make_key, make_record, make_shape
from tunegate_cache.format.names import group_of
from tunegate_cache.format.records import ExactHit, TuningRecord
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.format.signing import Signer, TrustedKeys
from tunegate_cache.maintenance.collection import Collection, collect
from tunegate_cache.maintenance.compaction import Compaction, Compactor
from tunegate_cache.protocol.rollback_guard import RollbackGuard
from tunegate_cache.protocol.trust import Trust
from tunegate_cache.protocol.tuning_cache import TuningCache
from tunegate_cache.stores.memory import MemoryStore

MAIN = group_of("main", TARGET)
NOBODY = TrustedKeys()
_now = itertools.count(1_795_000_000_000)


class Place:
    """A store, and what teams do with it."""

    def __init__(
        self, root: Path, keys: TrustedKeys = NOBODY, signer: Signer | None = None
    ) -> None:
        self.store = MemoryStore()
        self._root, self._keys, self._signer = root, keys, signer
        self.seen = RollbackGuard()
        self.seconds = 1_795_000_000

    def with_keys(self, keys: TrustedKeys) -> Place:
        return Place(self._root, keys, self._signer).with_store(self.store)

    def with_store(self, store: MemoryStore) -> Place:
        self.store = store
        return self

    def cache(self, signer: Signer | None = None) -> TuningCache:
        return cache_over(
            self.store,
            self._root,
            monotonic=lambda: 0.0,
            milliseconds=lambda: next(_now),
            trust=Trust(keys=self._keys, signer=signer or self._signer, seen=self.seen),
        )

    def publish(self, *records: TuningRecord, signer: Signer | None = None) -> None:
        assert self.cache(signer).publish(records)

    def compact(self, revoke: Sequence[Revocation] = (), *, rebuild: bool = False) -> Compaction:
        self.seconds += 1
        compactor = Compactor(
            self.store, MAIN, keys=self._keys, signer=self._signer, seconds=lambda: self.seconds
        )
        return compactor.run(revoke=revoke, rebuild=rebuild)

    def collect(self, grace_seconds: int = 0, *, dry_run: bool = False) -> Collection:
        return collect(
            self.store,
            MAIN,
            keys=self._keys,
            now=self.seconds,
            grace_seconds=grace_seconds,
            dry_run=dry_run,
        )

    def archive(self, *records: TuningRecord) -> None:
        """Leaves these and all others in archives alone."""
        assert not records or self.cache().publish(records)
        self.compact()
        self.collect()

    def best(self, workload: str = "w") -> TuningRecord | None:
        key = make_key(workload)
        hit = self.cache().lookup([(key, make_shape())])[key]
        return hit.records[0] if isinstance(hit, ExactHit) else None

    def objects(self, kind: str) -> int:
        return sum(f"/{kind}/" in name for name in self.store.names(""))


def numbered(count: int, first: int = 0) -> list[TuningRecord]:
    return [make_record(f"w{first + n}") for n in range(count)]
