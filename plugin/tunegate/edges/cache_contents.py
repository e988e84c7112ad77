"""What a cache holds, counted from its segments."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import msgspec

from tunegate.config import CacheConfig
from tunegate.edges.shared_cache import open_store
from tunegate.errors import EnvironmentUnfitError
from tunegate_cache import names, segment
from tunegate_cache.records import TuningRecord
from tunegate_cache.store import ObjectNotFoundError, StoreUnavailableError


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """One zone and target. `failures` are candidates that did not build, run or compute right."""

    zone: str
    target: str
    segments: int
    records: int
    workloads: int
    failures: int
    corrupt: int
    size_bytes: int


def cache_contents(config: CacheConfig, *, state: Path, root: Path) -> tuple[Contents, ...]:
    """Raises EnvironmentUnfitError where the store does not answer."""
    store = open_store(config, state=state, root=root)
    places: dict[tuple[str, str], list[names.SegmentName]] = defaultdict(list)
    try:
        for name in store.names(f"{names.ROOT}/z/"):
            parsed, place = names.parse_segment(name), names.parse_place(name)
            if parsed is not None and place is not None:
                places[place].append(parsed)
        bodies = {s: [store.read(n.name) for n in found] for s, found in places.items()}
    except (StoreUnavailableError, ObjectNotFoundError) as error:
        message = f"the cache does not answer ({error}). Run tunegate doctor."
        raise EnvironmentUnfitError(message) from error
    return tuple(_counted(place, found, bodies[place]) for place, found in sorted(places.items()))


def _counted(
    place: tuple[str, str], found: list[names.SegmentName], bodies: list[bytes]
) -> Contents:
    records: list[TuningRecord] = []
    corrupt = 0
    for name, body in zip(found, bodies, strict=True):
        try:
            records.extend(segment.unpack(body, name.digest).records)
        except segment.CorruptSegmentError:
            corrupt += 1
    return Contents(
        zone=place[0],
        target=place[1],
        segments=len(found),
        records=len(records),
        workloads=len({record.key.workload for record in records}),
        failures=sum(record.status != "ok" for record in records),
        corrupt=corrupt,
        size_bytes=sum(len(body) for body in bodies),
    )
