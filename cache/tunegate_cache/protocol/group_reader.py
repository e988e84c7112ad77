"""What the readable zones hold for a target: segments are listed before HEAD is read, so that what
was acknowledged before is in one of the two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from tunegate_cache.format import head as heads
from tunegate_cache.format import names, segment, snapshot_index
from tunegate_cache.format.head import Head
from tunegate_cache.format.names import Group, SegmentName, group_of
from tunegate_cache.format.record_codec import RefusedLine
from tunegate_cache.format.records import TuningRecord
from tunegate_cache.format.revocation import Revocation, is_revoked
from tunegate_cache.format.segment import StoredRecord
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.format.snapshot_index import SnapshotIndex
from tunegate_cache.protocol.read_trouble import ReadTrouble
from tunegate_cache.protocol.rollback_guard import RollbackGuard
from tunegate_cache.protocol.segments_of_group import is_trusted
from tunegate_cache.stores.gather_with_deadline import gather_with_deadline
from tunegate_cache.stores.store import ObjectNotFoundError, ObjectStore, Pointer

_Asked = TypeVar("_Asked")
_T = TypeVar("_T")
_ATTEMPTS = 3
_MAX_FRESH = 400
"""More segments than this are a sign that nobody compacts; the latest are read."""

PinnedSnapshots = Mapping[Group, str]
"""Digest of the index that a group is pinned to."""


class OpenSnapshot(msgspec.Struct, frozen=True):
    """An index, ready to be asked."""

    group: Group
    index: SnapshotIndex
    block_of: Mapping[str, int]
    revoked: tuple[Revocation, ...]


class GroupContents(msgspec.Struct, frozen=True):
    """Records of the segments that no snapshot covers, and the snapshots."""

    records: tuple[TuningRecord, ...]
    snapshots: tuple[OpenSnapshot, ...]


class _StaleListingError(Exception):
    """Something that was listed has gone: a compaction and a collection ran in between."""


class GroupReader:
    """Reads all of a target once. Trouble of any kind costs the records it touches."""

    def __init__(
        self,
        store: ObjectStore,
        zones: Sequence[str],
        *,
        keys: TrustedKeys,
        pins: PinnedSnapshots,
        seen: RollbackGuard,
        trouble: ReadTrouble,
        monotonic: Callable[[], float],
    ) -> None:
        self._store, self._zones = store, zones
        self._keys, self._pins, self._seen = keys, pins, seen
        self._trouble, self._monotonic = trouble, monotonic

    def read(self, target: str, deadline: float) -> GroupContents:
        for attempt in range(_ATTEMPTS):
            try:
                return self._read(target, deadline, is_last=attempt == _ATTEMPTS - 1)
            except _StaleListingError:
                continue
        return GroupContents((), ())

    def unpacked(
        self,
        name: SegmentName,
        body: bytes,
        target: str,
        deadline: float,
        revoked: tuple[Revocation, ...] = (),
    ) -> Iterator[TuningRecord]:
        """The usable records of one segment, as many as there is time for."""
        try:
            lines = segment.lines(body, name.digest)
        except segment.CorruptSegmentError as error:
            self._trouble.corrupt(target, f"segment {name.name}", str(error))
            return
        if not is_trusted(name, body, self._keys):
            self._trouble.unsigned(target, f"segment {name.name}")
            return
        for line in lines:
            record = self._accepted(name, line, target)
            if record is not None and not is_revoked(record, revoked):
                yield record.record
            if self._monotonic() > deadline:
                self._trouble.late(target)
                return

    def _accepted(
        self, name: SegmentName, line: StoredRecord | RefusedLine, target: str
    ) -> StoredRecord | None:
        if isinstance(line, RefusedLine):
            self._trouble.rejected(line)
            return None
        if line.record.key.target == target:
            return line
        if names.is_of_target(name, target):
            self._trouble.rejected(RefusedLine("another target", line.record.key.workload))
        return None

    def _read(self, target: str, deadline: float, *, is_last: bool) -> GroupContents:
        groups = [group_of(zone, target) for zone in self._zones]
        live = [group for group in groups if group not in self._pins]
        listed = self._listed(live, target, deadline)
        # HEAD is asked for only where it was listed: who may not list everything is told that a
        # missing object is forbidden.
        compacted = [group for group, names_of in listed.items() if group.head in names_of]
        found = self._heads(compacted, target, deadline)
        fresh = [
            name
            for group, names_of in listed.items()
            for name in names.segments_under(f"{group.prefix}seg/", names_of)
            if group not in found or name.file not in found[group].covers
        ]
        revoked = {group: head.revoked for group, head in found.items()}
        snapshots = self._snapshots(found, target, deadline, is_last=is_last)
        records = self._segments(fresh, revoked, target, deadline, is_last=is_last)
        return GroupContents(tuple(records), tuple(snapshots))

    def _listed(
        self, groups: Sequence[Group], target: str, deadline: float
    ) -> Mapping[Group, Sequence[str]]:
        asked = {group: partial(self._store.names, group.prefix) for group in groups}
        return dict(self._answers(asked, target, deadline, is_last=True))

    def _heads(self, groups: Sequence[Group], target: str, deadline: float) -> Mapping[Group, Head]:
        asked = {group: partial(self._pointer, group) for group in groups}
        found: dict[Group, Head] = {}
        for group, pointer in self._answers(asked, target, deadline, is_last=True):
            if pointer is None:
                continue
            try:
                head = heads.decode_head(pointer.body, group, self._keys)
            except heads.CorruptHeadError as error:
                self._trouble.corrupt(target, group.head, str(error))
                continue
            if self._seen.is_older(group, head.version):
                self._trouble.corrupt(target, group.head, "older than one seen before")
            else:
                found[group] = head
        return found

    def _pointer(self, group: Group) -> Pointer | None:
        try:
            return self._store.read_pointer(group.head)
        except ObjectNotFoundError:
            return None

    def _snapshots(
        self, found: Mapping[Group, Head], target: str, deadline: float, *, is_last: bool
    ) -> Iterator[OpenSnapshot]:
        wanted = {group: head.snapshot.index for group, head in found.items()}
        wanted |= {g: i for g, i in self._pins.items() if g.target == target[: len(g.target)]}
        asked = {g: partial(self._store.read, g.content("idx", i)) for g, i in wanted.items()}
        for group, body in self._answers(asked, target, deadline, is_last=is_last):
            try:
                index = snapshot_index.decode_index(body, wanted[group])
            except snapshot_index.CorruptIndexError as error:
                self._trouble.corrupt(target, group.content("idx", wanted[group]), str(error))
                continue
            revoked = found[group].revoked if group in found else ()
            yield OpenSnapshot(group, index, index.block_of(), revoked)

    def _segments(
        self,
        fresh: Sequence[SegmentName],
        revoked: Mapping[Group, tuple[Revocation, ...]],
        target: str,
        deadline: float,
        *,
        is_last: bool,
    ) -> Iterator[TuningRecord]:
        """Newest first, so that the budget buys the best."""
        newest = sorted(fresh, key=lambda name: -name.milliseconds)
        if len(newest) > _MAX_FRESH:
            self._trouble.uncompacted(target, len(newest))
        asked = {name: partial(self._store.read, name.name) for name in newest[:_MAX_FRESH]}
        for name, body in self._answers(asked, target, deadline, is_last=is_last):
            yield from self.unpacked(name, body, target, deadline, revoked.get(name.group, ()))

    def _answers(
        self,
        asked: Mapping[_Asked, Callable[[], _T]],
        target: str,
        deadline: float,
        *,
        is_last: bool,
    ) -> Iterator[tuple[_Asked, _T]]:
        """Raises _StaleListingError for what has gone, unless that is the last attempt."""
        answered = 0
        for name, answer in gather_with_deadline(
            asked, deadline=deadline, monotonic=self._monotonic
        ):
            if self._monotonic() > deadline:
                break  # what has come is no reason to go on: unpacking takes time as well
            answered += 1
            if isinstance(answer, ObjectNotFoundError) and not is_last:
                raise _StaleListingError
            if isinstance(answer, Exception):
                self._trouble.unavailable(target)
            else:
                yield name, answer
        if answered < len(asked):
            self._trouble.late(target)
