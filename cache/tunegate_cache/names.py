"""The layout of the store, in one place. Zone first, because permissions go by prefix.

    ms1/z/<zone>/g/<target>/seg/<milliseconds13>-<writer8>-<sha256>.zst

Packs, indexes and HEAD of a compacted cache will stand beside `seg/`.
"""

from __future__ import annotations

import re

import msgspec

ROOT = "ms1"
_ZONE_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_SEGMENT = re.compile(
    r"(?P<prefix>.+/seg/)(?P<ms>\d{13})-(?P<writer>[0-9a-f]{8})-(?P<digest>[0-9a-f]{64})\.zst"
)
_TARGET_DIGITS = 16


class SegmentName(msgspec.Struct, frozen=True):
    name: str
    milliseconds: int
    writer: str
    digest: str


def zone_problem(zone: str) -> str | None:
    """Why a text is not a zone (`main`, `rel`, `team/x`, `pr/owner/repo/7`, `dev/me`), or None."""
    parts = zone.split("/")
    if all(_ZONE_PART.fullmatch(part) for part in parts):
        return None
    return f'zone "{zone}" must be words of letters, digits, ".", "_" and "-", joined by "/"'


def segment_prefix(zone: str, target: str) -> str:
    """`target` is the 64-digit target key; records hold all of it, names only its start."""
    return f"{ROOT}/z/{zone}/g/{target[:_TARGET_DIGITS]}/seg/"


def segment_name(zone: str, target: str, *, milliseconds: int, writer: str, digest: str) -> str:
    return f"{segment_prefix(zone, target)}{milliseconds:013d}-{writer}-{digest}.zst"


def parse_segment(name: str) -> SegmentName | None:
    """The parts of a segment's name; None for any other object."""
    match = _SEGMENT.fullmatch(name)
    if match is None:
        return None
    return SegmentName(name, int(match["ms"]), match["writer"], match["digest"])
