"""Copies a group to another store, and segments from one."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from tunegate_cache.format import segment
from tunegate_cache.format.head import Head
from tunegate_cache.format.names import Group, SegmentName, parse_segment
from tunegate_cache.format.revocation import SKEW_SECONDS, Revocation, counted
from tunegate_cache.format.segment import SegmentContents
from tunegate_cache.format.signing import Signer, TrustedKeys
from tunegate_cache.maintenance.compaction import Compactor
from tunegate_cache.protocol import archive, group_state
from tunegate_cache.protocol.archive import CorruptArchiveError
from tunegate_cache.protocol.group_state import CurrentHead
from tunegate_cache.protocol.segments import is_damaged, opened_segment, read_archive
from tunegate_cache.protocol.snapshots import snapshot_problem
from tunegate_cache.stores.store import (
    MaintainedStore,
    ObjectConflictError,
    ObjectNotFoundError,
    ObjectStore,
    PointerMovedError,
    StoreUnavailableError,
)

_MOST_TRIES = 3
_CHECK = "run tunegate cache fsck"
_UNMERGED = (
    "the copy has records or revocations of its own, or from before the zone had this key, and a "
    "HEAD for all needs a signature. Set TUNEGATE_SIGNING_KEY, or name another directory"
)


_Revoked = tuple[Revocation, ...]


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """`records` counts those of segments, including objects that existed already; `revoked` records
    stayed behind, and `untrusted` segments, which no trusted key has signed."""

    objects: int = 0
    records: int = 0
    revoked: int = 0
    untrusted: int = 0
    size_bytes: int = 0
    problems: tuple[str, ...] = ()

    def plus(self, other: Copied) -> Copied:
        pairs = zip(*map(msgspec.structs.astuple, (self, other)), strict=True)
        sums = (mine + theirs for mine, theirs in pairs)
        return Copied(**dict(zip(self.__struct_fields__, sums, strict=True)))


def pull(
    source: ObjectStore,
    destination: MaintainedStore,
    group: Group,
    keys: TrustedKeys,
    signer: Signer | None = None,
) -> Copied:
    """Copies the snapshot, the segments beside it, and HEAD last: an interrupted copy is an older
    cache, not a broken one. Where the destination has records or revocations of its own, HEAD is
    not copied: a compaction there, signed by `signer`, merges both. Begins again if something is
    gone that a compaction and a collection have replaced meanwhile. Raises
    StoreUnavailableError."""
    tries = 0
    while True:
        tries += 1
        listing, current = group_state.state(source, group, keys)
        lost = (f"{group.head}: {current.problem}; {_CHECK}",) if current.problem else ()
        if lost and not _is_begun(current, keys, group.zone):
            return Copied(problems=lost)
        object_names = [segment_name.name for segment_name in listing.fresh(current.head)]
        if current.head is not None:
            object_names += dict.fromkeys(current.head.referenced_objects(group))
        copied = _copy(source, destination, object_names, keys)
        is_same = group_state.current_head(source, group, keys).digest == current.digest
        if copied.problems and not is_same and tries < _MOST_TRIES:
            continue
        if copied.problems and not _is_complete(destination, group, current):
            there, own = group_state.state(destination, group, keys)
            if own.head is not None or there.fresh(current.head) != there.segments:
                return copied  # what is there finds more than a HEAD of which a part is missing
        problems = _move_head(source, destination, group, current, keys=keys, signer=signer)
        return copied.plus(Copied(problems=(*lost, *problems)))


def _is_complete(destination: ObjectStore, group: Group, current: CurrentHead) -> bool:
    """Returns whether the snapshot of this HEAD is there, whatever else is missing."""
    head = current.head
    return head is not None and not snapshot_problem(destination, group, head.snapshot.index)


def _is_begun(current: CurrentHead, keys: TrustedKeys, zone: str) -> bool:
    """Returns whether a HEAD may be missing because the first compaction, or copy, has not ended.
    What stands there counts; in a signed zone somebody may have deleted it for what it revokes."""
    return current.tag is None and not keys.is_required(zone)


def _move_head(
    source: ObjectStore,
    destination: MaintainedStore,
    group: Group,
    current: CurrentHead,
    *,
    keys: TrustedKeys,
    signer: Signer | None,
) -> tuple[str, ...]:
    """Gives the destination the HEAD, or one of what both have. Returns problems."""
    if current.head is None:
        return ()
    while True:
        own = group_state.current_head(destination, group, keys)
        if own.is_later:
            return (f"{group.zone}: {own.problem}",)
        try:
            # Of a signed zone no machine that has seen the later HEAD would believe this one.
            is_later = own.head is not None and own.head.version > current.head.version
            is_back = is_later and keys.is_required(group.zone)
            if not (is_back or _has_more(source, destination, group, own, current.head)):
                destination.move_pointer(group.head, current.body, own.tag)
                return ()
        except PointerMovedError:
            continue
        if not keys.is_signer(group.zone, signer):
            return (f"{group.zone}: {_UNMERGED}",)
        compactor = Compactor(destination, group, keys=keys, signer=signer)
        merged = compactor.run(revoke=current.head.revoked)
        if merged.status != "moved":
            return tuple(f"{group.zone}: {problem}" for problem in merged.problems)


def _has_more(
    source: ObjectStore, destination: ObjectStore, group: Group, own: CurrentHead, head: Head
) -> bool:
    """Returns whether the destination has archived or revoked what the HEAD does not know."""
    if own.head is not None and not set(own.head.revoked) <= set(head.revoked):
        return True
    theirs = {group.content("cold", digest) for digest in head.archives}
    more = set(group_state.listing(destination, group).archives) - theirs
    return bool(more) and not _files(destination, more) <= _files(source, theirs)


def _archived(store: ObjectStore, group: Group, keys: TrustedKeys) -> frozenset[str]:
    """Returns the files of the segments that the archives of a trusted HEAD hold. They are read
    whole: what a damaged one says that it holds may be nowhere."""
    head = group_state.current_head(store, group, keys).head
    files: set[str] = set()
    for digest in head.archives if head else ():
        with suppress(CorruptArchiveError, StoreUnavailableError):
            files |= {name.file for name, _ in read_archive(store, group, digest)}
    return frozenset(files)


def _files(store: ObjectStore, archives: Iterable[str]) -> frozenset[str]:
    """Returns the files of the segments in those that can be read."""
    files: set[str] = set()
    for name in archives:
        with suppress(CorruptArchiveError):
            files |= archive.files(store, name)
    return frozenset(files)


def _copy(
    source: ObjectStore,
    destination: MaintainedStore,
    object_names: Iterable[str],
    keys: TrustedKeys,
) -> Copied:
    """Copies objects. A segment that nobody trusts stays behind: a push from there would sign
    it."""
    copied = Copied()
    for name in object_names:
        with suppress(ObjectNotFoundError):
            body = source.read(name)
            own = parse_segment(name)
            is_trusted = own is None or segment.is_trusted(own, body, keys)
            if own and not is_trusted and not is_damaged(own, body, keys):
                copied = copied.plus(Copied(untrusted=1))
                continue
            if is_trusted and segment.is_proven(name, body):  # else it would bar the whole one
                destination.write(name, body)
                copied = copied.plus(Copied(objects=1, size_bytes=len(body)))
                continue
        problem = f"{name} is missing or damaged; {_CHECK}"
        copied = copied.plus(Copied(problems=(problem,)))
    return copied


def push(
    source: MaintainedStore,
    destination: ObjectStore,
    zone: str,
    *,
    keys: TrustedKeys,
    signer: Signer | None,
    are_moved: bool = False,
) -> Copied:
    """Copies a zone's segments, including archived ones, each once, and signs those that the
    destination would not trust. What was revoked stays behind, and what the source did not trust: a
    new signature would hide whose it was. If they `are_moved`, the source forgets each that was
    delivered, and nothing else: a run may add others meanwhile. Raises StoreUnavailableError."""
    copied = Copied()
    files, untrusted = set[str](), set[str]()
    rules_of = functools.cache(lambda group: _rules(source, destination, group, keys))
    archived_in = functools.cache(lambda group: _archived(destination, group, keys))
    for place, found in _bodies(source, zone, keys):
        contents = found if isinstance(found, str) else opened_segment(*found, TrustedKeys())
        if isinstance(found, str) or isinstance(contents, str):
            copied = copied.plus(Copied(problems=(f"{place}: {contents}",)))
            continue
        group, file = found[0].group, found[0].file
        if file in files:
            continue
        rules = rules_of(group)
        if not any(segment.is_trusted(*found, each) for each in (keys, rules.keys)):
            untrusted.add(file)
            continue
        files.add(file)
        name, body, left, is_cut = _offered(found, contents, rules, keys, signer)
        hidden = len(contents.stored) - left
        done = Copied(revoked=hidden)
        if not are_moved and name.file in archived_in(group):  # it would be archived once more
            done = done.plus(Copied(records=left))
        elif left or not is_cut:
            done = done.plus(_write(destination, name, body, left))
        if is_cut and contents.refused:
            problem = f"{place}: lines stay behind, which this version cannot read"
            done = done.plus(Copied(problems=(problem,)))
        if are_moved and hidden and not rules.is_sure:
            problem = f"{group.head}: no trusted key has signed it, and it revokes what waits here"
            done = done.plus(Copied(problems=(f"{problem}; {_CHECK} --repair",)))
        copied = copied.plus(done)
        if are_moved and not done.problems:
            source.delete(place)
    return copied.plus(Copied(untrusted=len(untrusted - files)))


def _write(destination: ObjectStore, name: SegmentName, body: bytes, records: int) -> Copied:
    try:
        destination.write(name.name, body)
    except ObjectConflictError as error:  # by a damaged one
        return Copied(problems=(f"{error}; {_CHECK} --repair",))
    return Copied(objects=1, records=records, size_bytes=len(body))


class _Rules(msgspec.Struct, frozen=True):
    """`keys` are those that the source trusts. What both places revoked is sure where the zone
    trusts the destination's HEAD."""

    keys: TrustedKeys
    ours: _Revoked
    all: _Revoked
    is_sure: bool


def _rules(
    source: ObjectStore, destination: ObjectStore, group: Group, keys: TrustedKeys
) -> _Rules:
    own = group_state.current_head(source, group, TrustedKeys())
    believed = TrustedKeys({group.zone: own.head.keys} if own.head and own.head.keys else None)
    is_sure = group_state.current_head(destination, group, keys).head is not None
    # A zone that gets another key has a HEAD that this one has not signed: it counts, too.
    theirs = group_state.current_head(destination, group, TrustedKeys()).revoked
    return _Rules(believed, own.revoked, (*own.revoked, *theirs), is_sure)


def _offered(
    found: tuple[SegmentName, bytes],
    contents: SegmentContents,
    rules: _Rules,
    keys: TrustedKeys,
    signer: Signer | None,
) -> tuple[SegmentName, bytes, int, bool]:
    """Returns a segment as its zone trusts it, the number of its records, and whether lines were
    cut: those that the source has revoked; of one that is cut or signed anew, and so loses its own
    signature, those that either place has revoked, and those that nobody can read."""
    name, body = found
    is_trusted = signer is None or segment.signature_of(body) is not None
    if keys.is_required(name.zone):
        is_trusted = segment.is_trusted(name, body, keys)
    latest = int(time.time()) + SKEW_SECONDS
    is_whole = is_trusted and all(counted(s, rules.ours, latest) for s in contents.stored)
    left = [s.text for s in contents.stored if is_whole or counted(s, rules.all, latest)]
    is_cut = len(left) < len(contents.stored) + len(contents.refused) and not is_whole
    if is_cut:
        body = segment.pack_lines(left)
        name = msgspec.structs.replace(name, digest=segment.segment_digest(body))
    if signer is not None and not is_whole:
        # What HEAD covers has the old name, or what nobody trusts.
        name = msgspec.structs.replace(name, writer=signer.key[:8])
        body = segment.signed(name, segment.without_signature(body), signer)
    return name, body, len(left), is_cut


def _bodies(
    source: ObjectStore, zone: str, keys: TrustedKeys
) -> Iterator[tuple[str, tuple[SegmentName, bytes] | str]]:
    """Yields the zone's segments by place. Yields why an object cannot be read in place of its
    content, and of a group whose HEAD cannot be read no more: it may have revoked the rest."""
    for group in group_state.groups(source, zone):
        try:
            yield from _bodies_of(source, group, keys)
        except StoreUnavailableError as error:
            yield group.head, str(error)


def _bodies_of(
    source: ObjectStore, group: Group, keys: TrustedKeys
) -> Iterator[tuple[str, tuple[SegmentName, bytes] | str]]:
    """Yields those that stand alone first: what is compacted meanwhile is in an archive then."""
    listed, current = group_state.state(source, group, TrustedKeys())
    if current.problem:
        yield group.head, current.problem
        if not _is_begun(current, keys, group.zone):
            return
    for name in listed.segments:
        try:
            yield name.name, (name, source.read(name.name))
        except ObjectNotFoundError:
            continue  # compacted or delivered meanwhile
        except StoreUnavailableError as error:
            yield name.name, str(error)
    current = group_state.current_head(source, group, TrustedKeys())
    for digest in current.head.archives if current.head else ():
        try:
            for name, body in read_archive(source, group, digest):
                yield name.name, (name, body)
        except (CorruptArchiveError, StoreUnavailableError) as error:
            yield group.content("cold", digest), str(error)
