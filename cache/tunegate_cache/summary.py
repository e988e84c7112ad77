"""What a store holds, counted by zone and target."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from tunegate_cache import segment
from tunegate_cache.names import ROOT, SegmentName, parse_segment
from tunegate_cache.records import TuningRecord
from tunegate_cache.store import ObjectNotFoundError, ObjectStore


class PlaceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`target` is the start of the target key; `failures` are records of failed candidates,
    `refused` lines that are no usable records, `corrupt` unreadable segments."""

    zone: str
    target: str
    segments: int
    records: int
    workloads: int
    failures: int
    refused: int
    corrupt: int
    size_bytes: int


def summary(store: ObjectStore) -> tuple[PlaceSummary, ...]:
    """Reads every segment. Raises StoreUnavailableError."""
    places: dict[tuple[str, str], list[SegmentName]] = defaultdict(list)
    for name in map(parse_segment, store.names(f"{ROOT}/z/")):
        if name is not None:
            places[name.zone, name.target].append(name)
    return tuple(
        _counted(store, zone, target, places[zone, target]) for zone, target in sorted(places)
    )


def _counted(
    store: ObjectStore, zone: str, target: str, found: Sequence[SegmentName]
) -> PlaceSummary:
    records: list[TuningRecord] = []
    refused = corrupt = size_bytes = 0
    for name in found:
        try:
            body = store.read(name.name)
            size_bytes += len(body)
            contents = segment.unpack(body, name.digest)
        except (ObjectNotFoundError, segment.CorruptSegmentError):
            corrupt += 1
            continue
        records.extend(contents.records)
        refused += len(contents.refused)
    return PlaceSummary(
        zone=zone,
        target=target,
        segments=len(found),
        records=len(records),
        workloads=len({record.key.workload for record in records}),
        failures=sum(record.status != "ok" for record in records),
        refused=refused,
        corrupt=corrupt,
        size_bytes=size_bytes,
    )
