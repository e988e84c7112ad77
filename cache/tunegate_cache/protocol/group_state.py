"""The state of one group in the store, read for its maintenance."""

from collections.abc import Sequence

import msgspec

from tunegate_cache.format import head as heads
from tunegate_cache.format import names
from tunegate_cache.format.head import Head
from tunegate_cache.format.names import ContentKind, Group, SegmentName
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.stores.store import ObjectNotFoundError, ObjectStore


class Listing(msgspec.Struct, frozen=True):
    """The names of a group's objects, by kind."""

    segments: tuple[SegmentName, ...]
    packs: tuple[str, ...]
    indexes: tuple[str, ...]
    archives: tuple[str, ...]

    def fresh(self, head: Head | None) -> tuple[SegmentName, ...]:
        """Returns the segments that HEAD does not cover."""
        covered = set(head.covers) if head else ()
        return tuple(name for name in self.segments if name.file not in covered)


class CurrentHead(msgspec.Struct, frozen=True):
    """The current HEAD. `head` is None if there is none, or if `problem` makes it unusable; `tag`
    is needed to replace it anyway. One of a later version (`is_later`) must not be replaced. `body`
    is what was read: read again, it may be another."""

    head: Head | None
    tag: str | None
    digest: str = ""
    problem: str = ""
    is_later: bool = False
    body: bytes = b""

    @property
    def revoked(self) -> tuple[Revocation, ...]:
        return self.head.revoked if self.head else ()


def listing(store: ObjectStore, group: Group) -> Listing:
    """Lists the group. Raises StoreUnavailableError."""
    segments: list[SegmentName] = []
    contents: dict[ContentKind, list[str]] = {"pack": [], "idx": [], "cold": []}
    for name in dict.fromkeys(store.names(group.prefix)):
        segment, content = names.parse_segment(name), names.parse_content(name)
        if segment is not None and segment.group == group:
            segments.append(segment)
        elif content is not None and content.group == group:
            contents[content.kind].append(name)
    return Listing(
        segments=tuple(segments),
        packs=tuple(contents["pack"]),
        indexes=tuple(contents["idx"]),
        archives=tuple(contents["cold"]),
    )


def groups(store: ObjectStore, zone: str | None = None) -> tuple[Group, ...]:
    """Returns every group with an object. Raises StoreUnavailableError."""
    prefix = f"{names.OBJECT_ROOT}/z/" if zone is None else f"{names.OBJECT_ROOT}/z/{zone}/"
    return groups_among(store.names(prefix), zone)


def groups_among(listed: Sequence[str], zone: str | None = None) -> tuple[Group, ...]:
    """Returns the groups of these names, of the zone if one is given."""
    all_groups = set()
    for name in listed:
        segment, content = names.parse_segment(name), names.parse_content(name)
        group = segment.group if segment else content.group if content else names.parse_head(name)
        if group is not None and zone in {None, group.zone}:
            all_groups.add(group)
    return tuple(sorted(all_groups))


def current_head(store: ObjectStore, group: Group, keys: TrustedKeys) -> CurrentHead:
    """Reads the group's HEAD. Raises StoreUnavailableError."""
    try:
        pointer = store.read_pointer(group.head)
    except ObjectNotFoundError:
        return CurrentHead(None, None)
    body, tag, digest = pointer.body, pointer.tag, heads.head_digest(pointer.body)
    try:
        return CurrentHead(heads.decode_head(body, group, keys), tag, digest, body=body)
    except heads.CorruptHeadError as error:
        is_later = isinstance(error, heads.LaterHeadError)
        return CurrentHead(None, tag, digest, str(error), is_later)


def state(store: ObjectStore, group: Group, keys: TrustedKeys) -> tuple[Listing, CurrentHead]:
    """Lists the group and reads HEAD then, as every reader does: what was acknowledged before is in
    one of the two. A HEAD that was lost has a `problem`, too. Raises StoreUnavailableError."""
    listed, current = listing(store, group), current_head(store, group, keys)
    if current.tag is None and (listed.archives or listed.indexes):
        problem = "HEAD is missing: no first compaction has ended, or what it revoked is lost too"
        current = CurrentHead(None, None, problem=problem)
    return listed, current
