"""A line of a segment or a pack that must not be used."""

from __future__ import annotations

import msgspec


class RefusedLine(msgspec.Struct, frozen=True):
    """A line that is no usable record; `workload` is its workload if it is readable."""

    reason: str
    workload: str = ""
