"""A table of a CI's events: what each compares and may write, or why it is refused.
The documentation shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec


class JudgedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What base and head are, and what of the cache the run may write."""

    base: str
    head: str
    writes: str


class RefusedEvent(msgspec.Struct, frozen=True):
    """`instead` is what to do, as a whole sentence."""

    reason: str
    instead: str


EventTable = Mapping[str, JudgedEvent | RefusedEvent]


def as_markdown(events: EventTable) -> str:
    """The table as its page shows it."""
    return "\n".join(_lines(events))


def event_refusal(events: EventTable, name: str, instead: str) -> str:
    """Why an event of this name is not judged; `instead` is for one that is not in the table."""
    row = events.get(name)
    if isinstance(row, RefusedEvent):
        return f"event {name} is refused: {row.reason}. {row.instead}"
    return f"event {name}: it is not one that tunegate knows. {instead}"


def _lines(events: EventTable) -> Iterator[str]:
    yield "| event | base | head | cache it may write |"
    yield "|---|---|---|---|"
    for name, row in events.items():
        if isinstance(row, JudgedEvent):
            yield f"| `{name}` | {row.base} | {row.head} | {row.writes} |"
    refused: dict[RefusedEvent, list[str]] = {}
    for name, row in events.items():
        if isinstance(row, RefusedEvent):
            refused.setdefault(row, []).append(f"`{name}`")
    if refused:
        yield ""
        yield "| refused | because | instead |"
        yield "|---|---|---|"
    for row, names in refused.items():
        yield f"| {', '.join(names)} | {row.reason} | {row.instead} |"
