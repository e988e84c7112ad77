"""Reads a target's records in the readable zones. Segments are listed before HEAD is read: what was
acknowledged before is in one of the two."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

import msgspec

from tunegate_cache.format import head as heads
from tunegate_cache.format import names, snapshot_index
from tunegate_cache.format.head import Head
from tunegate_cache.format.names import Group, SegmentName, group_of
from tunegate_cache.format.records import TuningRecord
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.protocol.segments import usable_records
from tunegate_cache.protocol.snapshots import OpenSnapshot
from tunegate_cache.protocol.target_requests import StaleListingError, TargetRequests
from tunegate_cache.protocol.trust import Trust
from tunegate_cache.protocol.uploads import Pending
from tunegate_cache.stores.store import ObjectNotFoundError, ObjectStore, Pointer

_REPETITIONS = 2
_MAX_FRESH = 400
"""More segments mean that nobody compacts; only the latest are read."""


class GroupContents(msgspec.Struct, frozen=True):
    """Records of the segments that no snapshot covers, with their zone, and the snapshots."""

    records: tuple[tuple[str, TuningRecord], ...]
    snapshots: tuple[OpenSnapshot, ...]


class GroupReader:
    """Reads all of a target once. Trouble of any kind costs the records it affects."""

    def __init__(self, store: ObjectStore, zones: Sequence[str], trust: Trust) -> None:
        self._store, self._zones, self._trust = store, zones, trust

    def read(self, requests: TargetRequests, waiting: Sequence[Pending] = ()) -> GroupContents:
        """Reads the target, and those segments that still wait on this machine. Lists again if
        something listed is gone, at most twice."""
        for _ in range(_REPETITIONS):
            with suppress(StaleListingError):
                return self._contents(requests.repeatable(), waiting)
        return self._contents(requests, waiting)

    def _contents(self, requests: TargetRequests, waiting: Sequence[Pending]) -> GroupContents:
        names_by_group = self._list_names(requests)
        # HEAD is requested only if it was listed: without the right to list, S3 answers that a
        # missing object is forbidden.
        compacted = [group for group, names_of in names_by_group.items() if group.head in names_of]
        heads_here = self._heads(compacted, requests)
        covered = {group: frozenset(head.covers) for group, head in heads_here.items()}
        unsafe = {
            group
            for group, names_of in names_by_group.items()
            if group not in heads_here and self._is_unsafe(group, names_of, requests)
        }
        fresh = [
            name
            for group, names_of in names_by_group.items()
            if group not in unsafe
            for name in names.segments_of(group, names_of)
            if name.file not in covered.get(group, ())
        ]
        records = [*self._records(fresh, heads_here, requests)]
        for own in waiting:
            if own.name.group not in {*self._trust.pins, *unsafe}:
                records += self._usable(own.name, own.body, heads_here, requests)
        return GroupContents(tuple(records), tuple(self._snapshots(heads_here, requests)))

    def _list_names(self, requests: TargetRequests) -> Mapping[Group, Sequence[str]]:
        """Returns the names in every group that is not pinned."""
        groups = [group_of(zone, requests.target) for zone in self._zones]
        live = [group for group in groups if group not in self._trust.pins]
        listings = {group: partial(self._store.names, group.prefix) for group in live}
        return dict(requests.answers(listings))

    def _heads(self, groups: Sequence[Group], requests: TargetRequests) -> Mapping[Group, Head]:
        pointers = {group: partial(self._pointer, group) for group in groups}
        by_group: dict[Group, Head] = {}
        for group, pointer in requests.answers(pointers):
            if pointer is None:
                continue
            try:
                head = heads.decode_head(pointer.body, group, self._trust.keys)
            except heads.CorruptHeadError as error:
                requests.trouble.corrupt(group.head, str(error))
                continue
            is_older = self._trust.seen.is_older(group, head.version, requests.latest)
            # Where nothing is signed it proves nothing: a cache may have been begun anew.
            if is_older and self._trust.keys.is_required(group.zone):
                requests.trouble.corrupt(group.head, "older than one seen before")
            else:
                by_group[group] = head
        return by_group

    def _is_unsafe(self, group: Group, names_of: Sequence[str], requests: TargetRequests) -> bool:
        """Returns whether signed segments stand beside a HEAD that is unusable, or gone since this
        machine has seen it: what that has revoked would count again."""
        was_there = group.head in names_of or self._trust.seen.is_older(group, 0, requests.latest)
        is_so = was_there and self._trust.keys.is_required(group.zone)
        if is_so:
            requests.trouble.corrupt(group.head, "what it may have revoked is not read")
        return is_so

    def _pointer(self, group: Group) -> Pointer | None:
        with suppress(ObjectNotFoundError):
            return self._store.read_pointer(group.head)
        return None

    def _snapshots(
        self, heads: Mapping[Group, Head], requests: TargetRequests
    ) -> Iterator[OpenSnapshot]:
        indices = {group: head.snapshot.index for group, head in heads.items()}
        here = {group_of(zone, requests.target) for zone in self._zones}
        indices |= {group: index for group, index in self._trust.pins.items() if group in here}
        reads = {g: partial(self._store.read, g.content("idx", i)) for g, i in indices.items()}
        for group, body in requests.answers(reads):
            try:
                index = snapshot_index.decode_index(body, indices[group])
            except snapshot_index.CorruptIndexError as error:
                requests.trouble.corrupt(group.content("idx", indices[group]), str(error))
                continue
            revoked = _revocations(heads, group)
            yield OpenSnapshot(group, index, index.block_of(), revoked, self._trust.keys)

    def _records(
        self, fresh: Sequence[SegmentName], heads: Mapping[Group, Head], requests: TargetRequests
    ) -> Iterator[tuple[str, TuningRecord]]:
        """Yields the segments' records, newest first, so that the time budget buys the best."""
        latest = 1000 * requests.latest
        newest = sorted(fresh, key=lambda n: (n.milliseconds > latest, -n.milliseconds))
        if len(newest) > _MAX_FRESH:
            requests.trouble.note_uncompacted(len(newest))
        reads = {name: partial(self._store.read, name.name) for name in newest[:_MAX_FRESH]}
        for name, body in requests.answers(reads):
            yield from self._usable(name, body, heads, requests)

    def _usable(
        self, name: SegmentName, body: bytes, heads: Mapping[Group, Head], requests: TargetRequests
    ) -> Iterator[tuple[str, TuningRecord]]:
        revoked = _revocations(heads, name.group)
        for record in usable_records(name, body, self._trust.keys, requests, revoked):
            yield name.group.zone, record


def _revocations(heads: Mapping[Group, Head], group: Group) -> tuple[Revocation, ...]:
    return heads[group].revoked if group in heads else ()
