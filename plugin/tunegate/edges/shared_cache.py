"""ports.TaskIndex over the shared cache."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tunegate.artifacts.tasks import CacheUse
from tunegate.config import CacheConfig
from tunegate.errors import ConfigError
from tunegate.ports import TaskIndex
from tunegate_cache.locate import UnknownAddressError, locate
from tunegate_cache.names import zone_problem
from tunegate_cache.records import Lookup, TuningRecord, WorkloadKey, WorkloadShape
from tunegate_cache.store import ObjectStore
from tunegate_cache.tuning_cache import TuningCache, Zones
from tunegate_cache.write_ahead import WriteAhead


class SharedCache:
    """The cache of one run. `state` is a local directory for copies and undelivered records."""

    def __init__(self, config: CacheConfig, *, state: Path, root: Path) -> None:
        """A relative directory in `config` lies under `root`. Raises ConfigError."""
        for zone in (config.zone, *config.read_zones):
            problem = zone_problem(zone)
            if problem is not None:
                raise ConfigError(f"cache: {problem}.")
        self._config = config
        store = open_store(config, state=state, root=root)
        url = _absolute(config.url, root)
        pending = hashlib.sha256(f"{config.endpoint_url or ''} {url}".encode()).hexdigest()[:16]
        self._cache = TuningCache(
            store,
            zones=Zones(config.zone, config.read_zones),
            mode=config.mode,
            write_ahead=WriteAhead(state / "undelivered" / pending),
            monotonic=time.monotonic,
            milliseconds=lambda: int(time.time() * 1000),
        )

    def lookup(
        self, wanted: Sequence[tuple[WorkloadKey, WorkloadShape]]
    ) -> Mapping[WorkloadKey, Lookup]:
        return self._cache.lookup(wanted)

    def publish(self, records: Sequence[TuningRecord]) -> bool:
        return self._cache.publish(records)

    def use(self) -> CacheUse:
        counted = self._cache.statistics
        notes = counted.notes
        if counted.refused_records:
            notes = (*notes, f"cache: {counted.refused_records} records were refused")
        return CacheUse(
            location=self._config.url,
            zone=self._config.zone,
            mode=self._config.mode,
            exact=counted.exact,
            transfer=counted.transfer,
            misses=dict(counted.misses),
            requests=sum(counted.requests.values()),
            bytes_read=counted.bytes_read,
            seconds=counted.seconds,
            notes=notes,
        )


def open_store(config: CacheConfig, *, state: Path, root: Path) -> ObjectStore:
    """Raises ConfigError for an address that is none."""
    try:
        return locate(
            _absolute(config.url, root),
            endpoint_url=config.endpoint_url,
            region=config.region,
            tier=state / "tier",
        )
    except UnknownAddressError as error:
        raise ConfigError(f"cache.url: {error}.") from error


def _absolute(url: str, root: Path) -> str:
    if ":" in url.partition("/")[0]:
        return url
    return str(root / Path(url).expanduser())


_: type[TaskIndex] = SharedCache
