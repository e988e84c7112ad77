"""Memory for the buffers between input and output: two that are live at once share no byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tunegate_whole_model.stages.parts import Span, StagePart


class Arena(msgspec.Struct, frozen=True):
    """The new place of each buffer by its old one, and the total size in bytes."""

    places: Mapping[int, int]
    size_bytes: int

    def place(self, start: int) -> int:
        """Returns the new place of a byte at the start of a buffer, or inside one."""
        buffer = max(each for each in self.places if each <= start)
        return self.places[buffer] + start - buffer


def buffers_of(parts: Sequence[StagePart], outputs: Sequence[Span]) -> tuple[Span, ...]:
    """Returns the arena's buffers; overlapping ones are one."""
    every = {s for part in parts for s in (*part.reads, *part.writes)} | set(outputs)
    found: list[Span] = []
    for span in sorted(each for each in every if each.place == "arena"):
        if found and found[-1].overlaps(span):
            found[-1] = Span("arena", found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(span)
    return tuple(found)


def place_buffers(
    buffers: Sequence[Span],
    parts: Sequence[StagePart],
    stages: Sequence[int],
    outputs: Sequence[Span],
    alignment_bytes: int,
) -> Arena:
    """Places large buffers first, each at the lowest place that is free in all of its stages. A
    buffer is live from the first stage that uses it to the last; `outputs` until the end."""
    lives = {buffer: _stages_of(buffer, parts, stages, outputs) for buffer in buffers}
    known: list[tuple[Span, range]] = []
    places, most = {}, 0
    for buffer in sorted(buffers, key=lambda each: (each.start - each.end, each.start)):
        size = -(-max(1, buffer.end - buffer.start) // alignment_bytes) * alignment_bytes
        busy = sorted(s for s, life in known if _share(life, lives[buffer]))
        start = _lowest(busy, size)
        known.append((Span("arena", start, start + size), lives[buffer]))
        places[buffer.start] = start
        most = max(most, start + size)
    return Arena(places, most)


def moved_part(part: StagePart, arena: Arena) -> StagePart:
    """Returns the part with its arena spans at their new places."""
    reads, writes = (
        tuple(_move(each, arena) for each in spans) for spans in (part.reads, part.writes)
    )
    return msgspec.structs.replace(part, reads=reads, writes=writes)


def _move(span: Span, arena: Arena) -> Span:
    if span.place != "arena":
        return span
    start = arena.place(span.start)
    return Span("arena", start, start + span.end - span.start)


def _stages_of(
    buffer: Span, parts: Sequence[StagePart], stages: Sequence[int], outputs: Sequence[Span]
) -> range:
    used = [
        stage
        for part, stage in zip(parts, stages, strict=True)
        if any(buffer.overlaps(span) for span in (*part.reads, *part.writes))
    ]
    end = max(stages, default=0)
    if any(buffer.overlaps(span) for span in outputs):
        used.append(end)
    return range(min(used, default=0), max(used, default=0) + 1)


def _share(some: range, other: range) -> bool:
    return some.start < other.stop and other.start < some.stop


def _lowest(busy: Sequence[Span], size: int) -> int:
    start = 0
    for span in busy:
        if span.start - start >= size:
            break
        start = max(start, span.end)
    return start
