"""A line of a segment or a pack that must not be used."""

from __future__ import annotations

import msgspec


class RefusedLine(msgspec.Struct, frozen=True):
    """A line that is no usable record; `workload` says whose it was where that can be read."""

    reason: str
    workload: str = ""
