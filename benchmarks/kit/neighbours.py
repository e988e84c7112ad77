"""The answers of a cache, which other models were tuned into, about the tasks of a model."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from tunegate.artifacts.tasks import TuningTask
from tunegate.config import CacheConfig
from tunegate.system.cache.shared_cache import SharedCache
from tunegate_cache.format.records import (
    DeviceFingerprint,
    Lookup,
    Miss,
    TransferHit,
    WorkloadKey,
)

DEVICE = DeviceFingerprint(name="here", kind="cpu", units=2, memory_bytes=0)


def answers(
    tasks: Sequence[TuningTask], sources: Path | None, scratch: Path
) -> Mapping[WorkloadKey, Lookup]:
    if sources is None:
        return {task.key: Miss("absent") for task in tasks}
    return cache(sources, scratch).lookup([(task.key, task.shape) for task in tasks])


def cache(sources: Path, scratch: Path) -> SharedCache:
    config = CacheConfig(url=str(sources.resolve()))
    return SharedCache(config, state=scratch / "state", root=scratch, device=DEVICE)


def exchanged(found: Mapping[WorkloadKey, Lookup]) -> dict[WorkloadKey, Lookup]:
    """The negative control: every task gets the neighbours of a task of another class."""
    hits = [hit for hit in found.values() if isinstance(hit, TransferHit)]
    random.Random(1).shuffle(hits)
    mixed: dict[WorkloadKey, Lookup] = {}
    for key, hit in found.items():
        if not isinstance(hit, TransferHit):
            mixed[key] = hit
            continue
        own = {record.template for record in hit.records}
        other = next((h for h in hits if own.isdisjoint(r.template for r in h.records)), None)
        mixed[key] = other or Miss("absent")
    return mixed
