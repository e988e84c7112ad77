"""Explains why a task was not found: the first of its keys that differs from every record."""

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from tunegate_cache.format import pack
from tunegate_cache.format.names import Group, group_of
from tunegate_cache.format.nearest import distance
from tunegate_cache.format.records import TuningRecord, WorkloadKey, WorkloadShape
from tunegate_cache.format.segment import SegmentContents
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.format.snapshot_index import CorruptIndexError
from tunegate_cache.protocol import group_state
from tunegate_cache.protocol.segments import counted_records, opened_segment
from tunegate_cache.protocol.snapshots import read_index
from tunegate_cache.stores.store import ObjectNotFoundError, ObjectStore

Differs = Literal["nothing", "trust", "status", "zone", "target", "extents", "skeleton"]


class Neighbour(msgspec.Struct, frozen=True, kw_only=True):
    """The nearest recorded shape of the same operation."""

    workload: str
    zone: str
    target: str
    extents: tuple[int, ...]
    distance: float


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation of a miss; `differs` is the first key that no record shares with the task.
    `nothing` is an exact hit; `trust` means that only the run's own, untrusted zone has records;
    `status` that only failures are known; `extents` that shapes can be transferred from. `targets`
    are the beginnings of other targets' keys that have it."""

    differs: Differs
    detail: str
    targets: tuple[str, ...] = ()
    neighbour: Neighbour | None = None


class KnownGroup(msgspec.Struct, frozen=True):
    """The content of a group: whether each workload has a usable record, and their shapes."""

    group: Group
    workloads: dict[str, bool]
    shapes: dict[str, WorkloadShape]


def read_group(store: ObjectStore, group: Group, keys: TrustedKeys, workload: str) -> KnownGroup:
    """Reads a group, and of its snapshot the records of one workload. Raises
    StoreUnavailableError."""
    contents_of_group = KnownGroup(group, {}, {})
    listing, current = group_state.state(store, group, keys)
    if current.head is not None:
        _add_index(contents_of_group, store, current.head.snapshot.index, workload, keys)
    for name in listing.fresh(current.head):
        try:
            contents = opened_segment(name, store.read(name.name), keys)
        except ObjectNotFoundError:
            continue  # collected since it was listed
        if isinstance(contents, SegmentContents):
            records = counted_records(contents, current.revoked, int(time.time()))
            _add_records(contents_of_group, records)
    return contents_of_group


def explain(
    groups: Sequence[KnownGroup],
    zones: Sequence[str],
    key: WorkloadKey,
    shape: WorkloadShape,
    *,
    own: Sequence[str] = (),
) -> Explanation:
    """Returns the explanation; a run trusts `zones`, and writes `own` without trusting it."""
    target = group_of("", key.target).target
    neighbour = _neighbour(groups, zones, target, key, shape)
    having = [k for k in groups if key.workload in k.workloads]
    difference = _explain_known_workload(having, zones, own, key.workload, target)
    if difference is None and neighbour is not None:
        difference = "extents", f"the nearest recorded shape is {_difference(shape, neighbour)}"
    what, detail = difference or (
        "skeleton",
        "no operation of this kind, with these data types, has a record that is not revoked",
    )
    targets = tuple(sorted({k.group.target for k in having} if what == "target" else ()))
    return Explanation(differs=what, detail=detail, targets=targets, neighbour=neighbour)


def _explain_known_workload(
    having: Sequence[KnownGroup],
    zones: Sequence[str],
    own: Sequence[str],
    workload: str,
    target: str,
) -> tuple[Differs, str] | None:
    """Returns the difference for this workload, None if nobody has it."""
    here = [k for k in having if k.group.target == target]
    readable = [k for k in here if k.group.zone in zones]
    claimed = [k for k in here if k.group.zone in own and k.workloads[workload]]
    if any(k.workloads[workload] for k in readable):
        return "nothing", f"there are records in zone {_zones(readable)}"
    if claimed:
        zone = _zones(claimed)
        return (
            "trust",
            f"only zone {zone} has records, which is not trusted: measured before they count",
        )
    if readable:
        return "status", f"only failures are known, in zone {_zones(readable)}"
    if here:
        read = ", ".join(zones)
        return "zone", f"the records are in zone {_zones(here)}; this run reads {read}"
    if having:
        targets = ", ".join(sorted({k.group.target for k in having}))
        return "target", f"recorded for target {targets}; this run's is {target}"
    return None


def _add_index(
    contents: KnownGroup, store: ObjectStore, digest: str, workload: str, keys: TrustedKeys
) -> None:
    try:
        index = read_index(store, contents.group, digest)
    except CorruptIndexError:
        return
    for row in index.rows:
        contents.workloads[row.workload.hex()] = False
    for skeleton, members in index.skeletons.items():
        for member in members:
            known = index.rows[member.row].workload.hex()
            contents.workloads[known] = True
            contents.shapes[known] = WorkloadShape(skeleton, member.extents)
    # The index tells neither a default schedule that won from failures, nor whose records count.
    if (number := index.block_of().get(workload)) is not None:
        block = index.blocks[number]
        with suppress(ObjectNotFoundError, pack.CorruptBlockError):
            place = contents.group.content("pack", index.packs[block.pack])
            found = [*pack.records(store.read_part(place, block.start, block.size), block)]
            contents.workloads.pop(workload)
            contents.shapes.pop(workload, None)
            counted = (s.record for s in found if keys.has(contents.group.zone, s.signer))
            _add_records(contents, (r for r in counted if r.key.workload == workload))


def _add_records(group: KnownGroup, records: Iterable[TuningRecord]) -> None:
    for record in records:
        workload, is_ok = record.key.workload, record.status == "ok"
        group.workloads[workload] = group.workloads.get(workload, False) or is_ok
        if is_ok and record.template:
            group.shapes[workload] = record.shape


def _neighbour(
    groups: Iterable[KnownGroup],
    zones: Sequence[str],
    target: str,
    key: WorkloadKey,
    shape: WorkloadShape,
) -> Neighbour | None:
    """Returns the nearest workload of the same target, preferably in a zone that is read."""
    distances = [
        (
            (k.group.target != target or k.group.zone not in zones),
            distance(shape.extents, other.extents),
            workload,
            k.group,
            other,
        )
        for k in groups
        for workload, other in k.shapes.items()
        if other.skeleton == shape.skeleton and workload != key.workload
    ]
    if not distances:
        return None
    _, far, workload, group, other = min(distances, key=lambda f: (f[0], f[1], f[2], f[3]))
    return Neighbour(
        workload=workload, zone=group.zone, target=group.target, extents=other.extents, distance=far
    )


def _difference(shape: WorkloadShape, neighbour: Neighbour) -> str:
    changed = [
        f"{ours} instead of {theirs}"
        for ours, theirs in zip(shape.extents, neighbour.extents, strict=False)
        if ours != theirs
    ]
    differences = ", ".join(dict.fromkeys(changed[:4]))
    return f"{neighbour.workload[:16]} in zone {neighbour.zone} (here {differences})"


def _zones(groups: Iterable[KnownGroup]) -> str:
    return ", ".join(sorted({k.group.zone for k in groups}))
