"""The layout of the store, in one place. Zone first, because permissions go by prefix.

    ms1/z/<zone>/g/<target16>/seg/<milliseconds13>-<writer8>-<sha256>.zst

Packs, indexes and HEAD of a compacted cache will stand beside `seg/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

ROOT = "ms1"
_TARGET_DIGITS = 16
_LONGEST_ZONE = 120
_LONGEST_NAME = 1024
"""S3 has no longer ones."""
_ZONE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*")
_SEGMENT = re.compile(
    rf"{ROOT}/z/(?P<zone>{_ZONE.pattern})/g/(?P<target>[0-9a-f]{{{_TARGET_DIGITS}}})/seg/"
    r"(?P<milliseconds>[0-9]{13})-(?P<writer>[0-9a-f]{8})-(?P<digest>[0-9a-f]{64})\.zst"
)


class SegmentName(msgspec.Struct, frozen=True, kw_only=True):
    """`target` is the start of the target key: records hold all of it."""

    zone: str
    target: str
    milliseconds: int
    writer: str
    digest: str

    @property
    def name(self) -> str:
        prefix = segment_prefix(self.zone, self.target)
        return f"{prefix}{self.milliseconds:013d}-{self.writer}-{self.digest}.zst"


def zone_problem(zone: str) -> str | None:
    """Why a text is not a zone (`main`, `rel`, `team/x`, `pr/owner/repo/7`, `dev/me`), or None."""
    if _ZONE.fullmatch(zone) and len(zone) <= _LONGEST_ZONE:
        return None
    return (
        f'zone "{zone}" must be words of letters, digits, ".", "_" and "-", joined by "/", '
        f"at most {_LONGEST_ZONE} characters together"
    )


def segment_prefix(zone: str, target: str) -> str:
    """Where the segments of a zone and a target key lie."""
    return f"{ROOT}/z/{zone}/g/{target[:_TARGET_DIGITS]}/seg/"


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
    """The parts of a segment's name; None for any other object."""
    match = _SEGMENT.fullmatch(name) if len(name) <= _LONGEST_NAME else None
    if match is None or len(match["zone"]) > _LONGEST_ZONE:
        return None
    return SegmentName(
        zone=match["zone"],
        target=match["target"],
        milliseconds=int(match["milliseconds"]),
        writer=match["writer"],
        digest=match["digest"],
    )


def segments_under(prefix: str, listed: Iterable[str]) -> Iterator[SegmentName]:
    """The segments of exactly that zone and target: a store that lists more is not believed, or a
    pull request's records could come in under `main`."""
    for name in listed:
        segment = parse_segment(name)
        if segment is not None and segment_prefix(segment.zone, segment.target) == prefix:
            yield segment


def is_of_target(segment: SegmentName, target: str) -> bool:
    """Whether a target key is the one that the name shortens."""
    return segment.target == target[:_TARGET_DIGITS]
