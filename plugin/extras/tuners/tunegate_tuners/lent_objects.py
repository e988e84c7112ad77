"""The names of what other tuners keep in the cache.

    ms1/z/<zone>/lent/<tool>/<key>/<file>/<milliseconds13>-<bytes>-<sha256>

The zone comes first, because permissions go by prefix. A name says when the object was written and
how large it is, so that a listing is enough to find the newest and to count. Objects never change.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from tunegate_cache.format.names import OBJECT_ROOT, zone_problem

Tool = Literal["helion", "triton", "flashinfer"]

_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}"
_HASHED = "sha256-"
_NAME = re.compile(
    rf"{OBJECT_ROOT}/z/(?P<zone>[A-Za-z0-9._/-]+)/lent/(?P<tool>helion|triton|flashinfer)/"
    rf"(?P<key>{_PART})/(?P<file>{_PART})/"
    r"(?P<milliseconds>[0-9]{13})-(?P<size>[0-9]{1,9})-(?P<digest>[0-9a-f]{64})"
)


class LentObject(msgspec.Struct, frozen=True, kw_only=True):
    """One object. `size` and `digest` are of the content without a signature; `key` and `file` are
    parts of the name, made by `name_part`."""

    zone: str
    tool: Tool
    key: str
    file: str
    milliseconds: int
    size: int
    digest: str

    @property
    def place(self) -> str:
        """Objects that newer ones replace."""
        return f"{tool_prefix(self.zone, self.tool)}{self.key}/{self.file}/"

    @property
    def name(self) -> str:
        return f"{self.place}{self.milliseconds:013d}-{self.size}-{self.digest}"


def name_part(text: str) -> str:
    """Returns a text as a part of a name: the text itself if possible, else its digest. No two
    texts share a part."""
    if re.fullmatch(_PART, text) and not text.startswith(_HASHED):
        return text
    return f"{_HASHED}{hashlib.sha256(text.encode(errors='surrogateescape')).hexdigest()}"


def tool_prefix(zone: str, tool: Tool) -> str:
    return f"{OBJECT_ROOT}/z/{zone}/lent/{tool}/"


def lent_objects(listed: Iterable[str]) -> Iterator[LentObject]:
    """Yields the objects among a store's names, of any zone."""
    for name in listed:
        match = _NAME.fullmatch(name)
        if match is not None and zone_problem(match["zone"]) is None:
            yield LentObject(
                zone=match["zone"],
                tool=msgspec.convert(match["tool"], Tool),
                key=match["key"],
                file=match["file"],
                milliseconds=int(match["milliseconds"]),
                size=int(match["size"]),
                digest=match["digest"],
            )
