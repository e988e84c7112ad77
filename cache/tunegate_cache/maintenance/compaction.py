"""Merges the segments of a group into archives, and the best of them into a snapshot.

Any number of compactions may run, anywhere, at any time, and die at any step. Objects are
immutable, HEAD is moved by compare-and-swap, and an archive whose HEAD was lost is recovered by the
next compaction, so the protocol is right even on a store whose conditions do not work. Nothing is
deleted here.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Literal

import msgspec

from tunegate_cache.format import head as heads
from tunegate_cache.format import pack, snapshot_index
from tunegate_cache.format.head import Head, Unreferenced
from tunegate_cache.format.names import Group, SegmentName, parse_content
from tunegate_cache.format.revocation import SKEW_SECONDS, Revocation
from tunegate_cache.format.segment import is_trusted, segment_digest
from tunegate_cache.format.signing import Signer, TrustedKeys
from tunegate_cache.protocol import archive, group_state
from tunegate_cache.protocol.group_state import CurrentHead, Listing
from tunegate_cache.protocol.hot_records import HotRecords
from tunegate_cache.protocol.segments import opened_segment, read_archive
from tunegate_cache.protocol.snapshots import (
    snapshot_problem,
    snapshot_records,
    write_content,
    write_snapshot,
)
from tunegate_cache.protocol.target_requests import MISDATED
from tunegate_cache.stores.store import MaintainedStore, ObjectNotFoundError, PointerMovedError

Status = Literal["compacted", "nothing new", "moved", "refused"]


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """`moved` means that another compaction was faster: what this one gathered is not lost;
    `refused` that there is a HEAD of a later version, or that the new one could not be read again.
    `recovered` is the number of earlier compactions' archives that no HEAD referred to, `hidden`
    that of the records that its new revocations cover."""

    group: Group
    status: Status
    version: int = 0
    segments: int = 0
    records: int = 0
    workloads: int = 0
    recovered: int = 0
    hidden: int = 0
    problems: tuple[str, ...] = ()


class _Found(msgspec.Struct, frozen=True):
    """The work to do. `orphans` are archives that HEAD should refer to."""

    listing: Listing
    current: CurrentHead
    orphans: tuple[str, ...]

    @property
    def old_head(self) -> Head | None:
        return self.current.head


_Gathered = tuple[tuple[str, ...], tuple[str, ...]]
"""The digests of new archives, and the files of the segments in them."""


class Compactor:
    """Compacts one group. `seconds` is the clock (since 1970), `at_once` the number of segments
    in memory: whoever may write a zone may write large ones."""

    def __init__(
        self,
        store: MaintainedStore,
        group: Group,
        *,
        keys: TrustedKeys,
        signer: Signer | None,
        seconds: Callable[[], int] = lambda: int(time.time()),
        at_once: int = 16,
    ) -> None:
        self._store, self._group = store, group
        self._keys, self._signer, self._seconds = keys, signer, seconds
        self._at_once = at_once
        self._problems: list[str] = []
        self._lost: set[str] = set()
        self._unheld: set[str] = set()
        self._repacked: list[str] = []

    def run(self, *, revoke: Sequence[Revocation] = (), rebuild: bool = False) -> Compaction:
        """Compacts the group. `rebuild` makes the snapshot again from all archives, and so does a
        new revocation. Raises StoreUnavailableError."""
        work = self._find_work()
        old, orphans = work.old_head, work.orphans
        fresh = work.listing.fresh(old)
        version = old.version if old else 0
        if work.current.is_later:
            return self._report("refused", 0)
        revoked = tuple(dict.fromkeys((*work.current.revoked, *revoke)))
        is_asked = rebuild or self._has_key_gone(old) or revoked != work.current.revoked
        if not (fresh or orphans or is_asked):
            return self._report("nothing new", version)
        hot = self._records_so_far(work, revoked, revoke, is_snapshot_usable=not is_asked)
        unheld = (name for name in work.listing.segments if name.file in self._unheld)
        archives, files = gathered = self._gather((*fresh, *unheld), hot)
        self._lost -= {*archives, *self._repacked}  # written again, under the same name
        if hot.misdated:
            self._problems.append(MISDATED)
        if not (files or orphans or is_asked):
            return self._report("nothing new", version)
        return self._publish(work, hot, gathered, is_repair=rebuild)

    def _has_key_gone(self, old: Head | None) -> bool:
        """Returns whether a key is trusted no longer, whose records may have kept others out of the
        snapshot. A new key changes nothing: two places with other keys would undo each other."""
        keys = set(self._keys.of(self._group.zone))
        return bool(old and keys and not (old.keys and keys.issuperset(old.keys)))

    def _find_work(self) -> _Found:
        listing, current = group_state.state(self._store, self._group, self._keys)
        if current.problem:
            self._problems.append(current.problem + "; repeat revocations" * (not current.is_later))
        orphans = () if current.is_later else self._orphans(listing, current.head)
        return _Found(listing, current, orphans)

    def _records_so_far(
        self,
        state: _Found,
        revoked: tuple[Revocation, ...],
        new: Sequence[Revocation],
        *,
        is_snapshot_usable: bool,
    ) -> HotRecords:
        """Returns the best records so far: from the snapshot, and from all archives if it must be
        rebuilt. A workload whose best records were revoked needs its next best, which only the
        archives have. Of an archive that is lost the snapshot still has the best. What HEAD covers
        and no archive holds is `_unheld`, to be gathered again."""
        old = state.old_head
        known = old.snapshot.at if old is not None else 0
        hot = HotRecords(max(self._seconds(), known) + SKEW_SECONDS, revoked, new)
        archives: tuple[str, ...] = ()
        covers: tuple[str, ...] = ()
        if old is not None and not (self._add_snapshot(hot, old) and is_snapshot_usable):
            archives, covers = old.archives, old.covers
        held = [self._add_archive(hot, digest) for digest in archives]
        held += [self._add_archive(hot, digest, is_orphan=True) for digest in state.orphans]
        self._unheld = set(covers).difference(*held)
        return hot

    def _orphans(self, listing: Listing, old: Head | None) -> tuple[str, ...]:
        """Returns the archives that no HEAD refers to, unless referenced archives have all of them
        that counts."""
        digests = [content.digest for name in listing.archives if (content := parse_content(name))]
        unknown = [digest for digest in digests if old is None or digest not in old.archives]
        if not unknown or old is None:
            return tuple(unknown)
        archived_files = frozenset().union(*(self._files(digest) for digest in old.archives))
        return tuple(d for d in unknown if not self._trusted_files(d) <= archived_files)

    def _trusted_files(self, digest: str) -> frozenset[str]:
        """Returns the files of an archive's segments without those that no trusted key has signed:
        whoever may write to the store may leave an archive there."""
        if not self._keys.is_required(self._group.zone):
            return self._files(digest)
        files: set[str] = set()
        with suppress(archive.CorruptArchiveError):
            for name, body in read_archive(self._store, self._group, digest):
                if is_trusted(name, body, self._keys):
                    files.add(name.file)
        return frozenset(files)

    def _files(self, digest: str) -> frozenset[str]:
        try:
            return archive.files(self._store, self._group.content("cold", digest))
        except archive.CorruptArchiveError as error:
            self._problems.append(f"archive {digest[:16]}: {error}")
            return frozenset()

    def _add_snapshot(self, hot: HotRecords, old: Head) -> bool:
        """Adds the last snapshot. Returns False if it cannot be read completely."""
        try:
            hot.add(snapshot_records(self._store, self._group, old.snapshot.index, self._keys))
        except (snapshot_index.CorruptIndexError, pack.CorruptBlockError) as error:
            self._problems.append(f"snapshot {old.version}: {error}; made anew")
            return False
        return True

    def _add_archive(self, hot: HotRecords, digest: str, *, is_orphan: bool = False) -> list[str]:
        """Adds an archive's records, and returns the files of its intact segments, also of those
        whose key is trusted no longer. HEAD would vouch for an orphan: of one only what counts is
        returned, and packed anew if not all does."""
        added: list[tuple[SegmentName, bytes]] = []
        others: list[str] = []
        try:
            for name, body in read_archive(self._store, self._group, digest):
                if self._add_segment(hot, name, body):
                    added.append((name, body))
                elif is_orphan or segment_digest(body) == name.digest:
                    others.append(name.file)
        except archive.CorruptArchiveError as error:
            self._lost.add(digest)
            self._problems.append(f"archive {digest[:16]}: {error}")
        if is_orphan and others:
            self._lost.add(digest)
            self._repacked += [self._archive(added)] if added else []
            others.clear()
        return others + [name.file for name, _ in added]

    def _add_segment(self, hot: HotRecords, name: SegmentName, body: bytes) -> bool:
        contents = opened_segment(name, body, self._keys)
        if isinstance(contents, str):
            self._problems.append(f"segment {name.file}: {contents}")
            return False
        hot.add(contents.stored)
        return True

    def _gather(self, fresh: Sequence[SegmentName], hot: HotRecords) -> _Gathered:
        """Writes the segments that still exist into archives, and adds their records."""
        archives: list[str] = []
        gathered: list[str] = []
        batch: list[tuple[SegmentName, bytes]] = []
        size = 0
        for name, body in self._bodies(sorted(fresh, key=lambda segment: segment.file)):
            if not self._add_segment(hot, name, body):
                continue
            if batch and size + len(body) > archive.MAX_ARCHIVE_BYTES:
                archives.append(self._archive(batch))
                batch, size = [], 0
            batch.append((name, body))
            size += len(body)
            gathered.append(name.file)
        if batch:
            archives.append(self._archive(batch))
        return tuple(archives), tuple(gathered)

    def _archive(self, batch: Sequence[tuple[SegmentName, bytes]]) -> str:
        """Writes an archive of these segments, and returns its digest."""
        return write_content(self._store, self._group, "cold", archive.pack_archive(batch))

    def _bodies(self, fresh: Sequence[SegmentName]) -> Iterator[tuple[SegmentName, bytes]]:
        """Yields the segments that still exist, in order. Those that others have compacted and
        collected since are in an archive."""
        with ThreadPoolExecutor(self._at_once) as pool:
            for first in range(0, len(fresh), self._at_once):
                bodies = pool.map(self._body, fresh[first : first + self._at_once])
                yield from (pair for pair in bodies if pair is not None)

    def _body(self, name: SegmentName) -> tuple[SegmentName, bytes] | None:
        try:
            return name, self._store.read(name.name)
        except ObjectNotFoundError:
            return None

    def _publish(
        self, state: _Found, hot: HotRecords, gathered: _Gathered, *, is_repair: bool
    ) -> Compaction:
        old, now, (archives, files) = state.old_head, self._seconds(), gathered
        # A HEAD that was lost is made anew: later than any that a machine may have seen. One that
        # counts further than a clock leaves no room for others, and machines do not remember it.
        is_signed = self._keys.is_required(self._group.zone)  # of which nothing may be left
        lost = now if state.current.tag or state.orphans or is_signed else 0
        is_countable = old is not None and old.version <= now + SKEW_SECONDS
        if old is not None and not is_countable:
            self._problems.append(f"HEAD has version {old.version}, later than any; counted anew")
        version = (old.version if old and is_countable else lost) + 1
        snapshot, workloads = write_snapshot(self._store, self._group, hot, version, now)
        kept = heads.kept_for_pins((*old.kept, old.snapshot), now) if old else ()
        if is_repair:
            kept = tuple(k for k in kept if not snapshot_problem(self._store, self._group, k.index))
        standing = {name.file for name in state.listing.segments} - self._unheld
        head = Head(
            version=version,
            parent=state.current.digest,
            snapshot=snapshot,
            archives=self._readable(old, (*state.orphans, *self._repacked, *archives)),
            covers=tuple(sorted({*files, *(set(old.covers if old else ()) & standing)})),
            revoked=hot.revoked,
            kept=kept,
            keys=self._keys.of(self._group.zone),
        )
        head = msgspec.structs.replace(head, unreferenced=self._list_unreferenced(state, head))
        body = heads.encode_head(head, self._group, self._signer)
        try:
            heads.decode_head(body, self._group, self._keys)
        except heads.CorruptHeadError as error:
            self._problems.append(f"nothing was written: {error}")
            return self._report("refused", old.version if old else 0)
        try:
            self._store.move_pointer(self._group.head, body, state.current.tag)
        except PointerMovedError:
            return self._report("moved", version)
        return self._report(
            "compacted",
            version,
            segments=len(files),
            records=hot.added,
            workloads=workloads,
            recovered=len(set(state.orphans) - self._lost),
            hidden=len(hot.hidden),
        )

    def _readable(self, old: Head | None, new: Sequence[str]) -> tuple[str, ...]:
        """Returns the archives, without those that turned out to be lost."""
        digests = dict.fromkeys((*(old.archives if old else ()), *new))
        return tuple(digest for digest in digests if digest not in self._lost)

    def _list_unreferenced(self, state: _Found, head: Head) -> tuple[Unreferenced, ...]:
        """Returns the objects that the next collections may delete; known ones keep their date."""
        old, listing = state.old_head, state.listing
        since = {entry.name: entry.since for entry in (old.unreferenced if old else ())}
        referenced, now = set(head.referenced_objects(self._group)), self._seconds()
        names = (*listing.packs, *listing.indexes, *listing.archives)
        # A HEAD that was lost has named the snapshots of pinned builds, which stay for their month.
        until = now + heads.KEPT_SECONDS
        begin = now if old else until
        return tuple(
            Unreferenced(name, min(until, since.get(name, begin)))
            for name in names
            if name not in referenced
        )

    def _report(self, status: Status, version: int, **counts: int) -> Compaction:
        told = tuple(dict.fromkeys(self._problems))
        done = Compaction(group=self._group, status=status, version=version, problems=told)
        return msgspec.structs.replace(done, **counts)
