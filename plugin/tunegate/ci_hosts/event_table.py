"""A table of a CI's events: what each compares and may write, or why it is refused."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class JudgedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that is judged: its base and head, and the zone of the cache that the run may
    write."""

    base: str
    head: str
    writes: str


class RefusedEvent(msgspec.Struct, frozen=True):
    """`instead` is what to do, as a whole sentence."""

    reason: str
    instead: str


EventTable = Mapping[str, JudgedEvent | RefusedEvent]


def event_refusal(events: EventTable, name: str, instead: str) -> str:
    """Returns why an event of this name is refused; `instead` is the advice for an unknown one."""
    row = events.get(name)
    if isinstance(row, RefusedEvent):
        return f"event {name} is refused: {row.reason}. {row.instead}"
    return f"event {name}: it is not one that tunegate knows. {instead}"
