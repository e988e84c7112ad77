"""The content of a store, counted by zone and target."""

import time
from collections import Counter

import msgspec

from tunegate_cache.format import pack, snapshot_index
from tunegate_cache.format.names import Group, SegmentName
from tunegate_cache.format.records import TuningRecord
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.protocol import archive, group_state
from tunegate_cache.protocol.segments import counted_records, opened_segment
from tunegate_cache.protocol.snapshots import snapshot_records
from tunegate_cache.stores.store import ObjectNotFoundError, ObjectStore


class GroupSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`target` is the beginning of the target key; `version` that of the last compaction, 0 before
    the first. `segments` exist by themselves, `archived` are in archives; `records` can be served.
    `devices` are the names of those that measured them, the most frequent first; `failures` are
    records of failed candidates, `refused` lines that are no usable records, `corrupt` objects that
    cannot be read, or that no trusted key has signed."""

    zone: str
    target: str
    version: int
    segments: int
    archived: int
    records: int
    workloads: int
    devices: tuple[str, ...]
    failures: int
    refused: int
    corrupt: int
    size_bytes: int


def summary(store: ObjectStore, group: Group, keys: TrustedKeys) -> GroupSummary:
    """Reads the snapshot, archive directories, and the segments beside them. Raises
    StoreUnavailableError."""
    return _Count(store, group, keys).summary()


class _Count:
    def __init__(self, store: ObjectStore, group: Group, keys: TrustedKeys) -> None:
        self._store, self._group, self._keys = store, group, keys
        self._records: set[TuningRecord] = set()
        self._refused = self._corrupt = self._bytes = 0

    def summary(self) -> GroupSummary:
        listing, current = group_state.state(self._store, self._group, self._keys)
        head, self._corrupt = current.head, int(bool(current.problem))
        archived: set[str] = set()
        if head is not None:
            self._add_snapshot(head.snapshot.index)
            for digest in head.archives:
                archived |= self._files(digest)
        fresh = listing.fresh(head)
        for name in fresh:
            self._add_segment(name, current.revoked)
        devices = Counter(record.device.name for record in self._records)
        return GroupSummary(
            zone=self._group.zone,
            target=self._group.target,
            version=head.version if head else 0,
            segments=len(fresh),
            archived=len(archived),
            records=len(self._records),
            workloads=len({record.key.workload for record in self._records}),
            devices=tuple(name for name, _ in devices.most_common()),
            failures=sum(record.status != "ok" for record in self._records),
            refused=self._refused,
            corrupt=self._corrupt,
            size_bytes=self._bytes,
        )

    def _add_snapshot(self, index: str) -> None:
        try:
            for stored in snapshot_records(self._store, self._group, index, self._keys):
                self._records.add(stored.record)
                self._bytes += len(stored.text)
        except (snapshot_index.CorruptIndexError, pack.CorruptBlockError):
            self._corrupt += 1

    def _files(self, digest: str) -> frozenset[str]:
        try:
            return archive.files(self._store, self._group.content("cold", digest))
        except archive.CorruptArchiveError:
            self._corrupt += 1
            return frozenset()

    def _add_segment(self, name: SegmentName, revoked: tuple[Revocation, ...]) -> None:
        try:
            body = self._store.read(name.name)
        except ObjectNotFoundError:
            return  # collected since it was listed
        self._bytes += len(body)
        contents = opened_segment(name, body, self._keys)
        if isinstance(contents, str):
            self._corrupt += 1
            return
        self._records.update(counted_records(contents, revoked, int(time.time())))
        self._refused += len(contents.refused)
