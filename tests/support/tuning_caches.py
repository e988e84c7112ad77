"""The cache of tunings over a store, as most tests use it."""

import time
from pathlib import Path
from typing import Any

from tunegate_cache.protocol.tuning_cache import TuningCache, Zones
from tunegate_cache.protocol.uploads import WriteAhead
from tunegate_cache.stores.store import ObjectStore


def cache_over(
    store: ObjectStore, root: Path, *, zone: str = "main", **options: object
) -> TuningCache:
    """A cache that reads `zone` and main, writes `zone`, and keeps what waits below `root`."""
    known: dict[str, Any] = {
        "mode": "rw",
        "write_ahead": WriteAhead(root / "wal"),
        "monotonic": time.monotonic,
        "milliseconds": lambda: int(time.time() * 1000),
        **options,
    }
    return TuningCache(store, zones=Zones(zone, ("main",)), **known)
