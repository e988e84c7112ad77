"""The layout of the store, in one place. The zone comes first, because permissions go by prefix.

    ms1/z/<zone>/g/<target16>/seg/<milliseconds13>-<writer8>-<sha256>.zst    what a run learned
    ms1/z/<zone>/g/<target16>/cold/<sha256>.arc     whole segments, gathered by a compaction
    ms1/z/<zone>/g/<target16>/pack/<sha256>.pack    the best records of every workload, in blocks
    ms1/z/<zone>/g/<target16>/idx/<sha256>.idx      which block holds which workload
    ms1/z/<zone>/g/<target16>/HEAD                  the only object that changes
    ms1/z/<zone>/history/<milliseconds13>-<sha256>.jsonl    what a run said (history.py)
    ms1/z/<zone>/lent/<tuner>/...           what other tuners keep (the extra tuners)
    ms1/z/exp/tasks/<device12>-<layer16>-<sha256>.jsonl    a task for cost models (research)

The number in a placeholder counts its characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, cast

import msgspec

OBJECT_ROOT = "ms1"
_TARGET_DIGITS = 16
_MAX_ZONE = 120
_MAX_NAME = 1024
"""S3's limit."""
_ZONE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*")

_GROUP = rf"{OBJECT_ROOT}/z/(?P<zone>{_ZONE.pattern})/g/(?P<target>[0-9a-f]{{{_TARGET_DIGITS}}})/"
_CONTENT = re.compile(
    rf"{_GROUP}(?P<kind>pack|idx|cold)/(?P<digest>[0-9a-f]{{64}})\.(?P<ending>pack|idx|arc)"
)
_SEGMENT = re.compile(
    rf"{_GROUP}seg/(?P<milliseconds>[0-9]{{13}})-(?P<writer>[0-9a-f]{{8}})-(?P<digest>[0-9a-f]{{64}})\.zst"
)
_HEAD = re.compile(rf"{_GROUP}HEAD")

ContentKind = Literal["pack", "idx", "cold"]
_ENDINGS: dict[str, str] = {"pack": "pack", "idx": "idx", "cold": "arc"}


class Group(msgspec.Struct, frozen=True, order=True):
    """A zone and a target, which are compacted together. `target` is the beginning of the target
    key."""

    zone: str
    target: str

    @property
    def prefix(self) -> str:
        return f"{OBJECT_ROOT}/z/{self.zone}/g/{self.target}/"

    @property
    def head(self) -> str:
        return f"{self.prefix}HEAD"

    def content(self, kind: ContentKind, digest: str) -> str:
        return f"{self.prefix}{kind}/{digest}.{_ENDINGS[kind]}"

    def segment(self, file: str) -> SegmentName | None:
        """Returns the segment with this file name."""
        return parse_segment(f"{self.prefix}seg/{file}")


def group_of(zone: str, target: str) -> Group:
    """Returns the group; `target` may be a whole target key."""
    return Group(zone, target[:_TARGET_DIGITS])


class ContentName(msgspec.Struct, frozen=True, kw_only=True):
    """An object that a compaction made, named after its content."""

    group: Group
    kind: ContentKind
    digest: str


class SegmentName(msgspec.Struct, frozen=True, kw_only=True):
    """`target` is the beginning of the target key; records hold all of it."""

    zone: str
    target: str
    milliseconds: int
    writer: str
    digest: str

    @property
    def file(self) -> str:
        return f"{self.milliseconds:013d}-{self.writer}-{self.digest}.zst"

    @property
    def name(self) -> str:
        return f"{self.group.prefix}seg/{self.file}"

    @property
    def group(self) -> Group:
        return Group(self.zone, self.target)


def zone_problem(zone: str) -> str | None:
    """Returns why a text is not a zone (`main`, `rel`, `team/x`, `pr/owner/repo/7`, `dev/me`), or
    None."""
    if _ZONE.fullmatch(zone) and len(zone) <= _MAX_ZONE:
        return None
    return (
        f'zone "{zone}" must be words of letters, digits, ".", "_" and "-", joined by "/", '
        f"at most {_MAX_ZONE} characters together"
    )


def segment_name(
    zone: str, target: str, *, milliseconds: int, writer: str, digest: str
) -> SegmentName:
    return SegmentName(
        zone=zone,
        target=target[:_TARGET_DIGITS],
        milliseconds=milliseconds,
        writer=writer,
        digest=digest,
    )


def parse_segment(name: str) -> SegmentName | None:
    """Returns the parts of a segment's name, None for any other object."""
    match = _SEGMENT.fullmatch(name) if len(name) <= _MAX_NAME else None
    if match is None or len(match["zone"]) > _MAX_ZONE:
        return None
    return SegmentName(
        zone=match["zone"],
        target=match["target"],
        milliseconds=int(match["milliseconds"]),
        writer=match["writer"],
        digest=match["digest"],
    )


def parse_content(name: str) -> ContentName | None:
    """Returns the parts of the name of a pack, an index or an archive, None for any other
    object."""
    match = _CONTENT.fullmatch(name)
    if match is None or _ENDINGS[match["kind"]] != match["ending"]:
        return None
    return ContentName(
        group=Group(match["zone"], match["target"]),
        kind=cast("ContentKind", match["kind"]),
        digest=match["digest"],
    )


def parse_head(name: str) -> Group | None:
    """Returns the group of this HEAD, None for any other object."""
    match = _HEAD.fullmatch(name)
    return None if match is None else Group(match["zone"], match["target"])


def segments_of(group: Group, names: Iterable[str]) -> Iterator[SegmentName]:
    """Yields the segments of exactly this zone and target: a store that lists more is not trusted,
    or a pull request's records could pass as `main`'s."""
    yield from (name for name in map(parse_segment, names) if name and name.group == group)
