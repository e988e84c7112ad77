"""The parts of a whole model: loop nests that write buffers, in model order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

SpanPlace = Literal["input", "arena", "weight"]


class Span(msgspec.Struct, frozen=True, order=True):
    """The bytes from `start` to before `end` of the arena, the weights, or all inputs in
    sequence."""

    place: SpanPlace
    start: int
    end: int

    def overlaps(self, other: Span) -> bool:
        """Returns whether they share a byte."""
        same = self.place == other.place
        return same and self.start < other.end and other.start < self.end


class StagePart(msgspec.Struct, frozen=True):
    """A loop nest whose iterations, its `blocks`, may run in parallel; `kernels` are indices of the
    functions that it calls in order. There are several only if there is one block."""

    kernels: tuple[int, ...]
    blocks: int
    reads: tuple[Span, ...]
    writes: tuple[Span, ...]


def depends(later: StagePart, earlier: StagePart) -> bool:
    """Returns whether the later part must wait: one of them writes what the other uses."""
    return (
        _meet(earlier.writes, later.reads)
        or _meet(earlier.writes, later.writes)
        or _meet(earlier.reads, later.writes)
    )


def join_neighbours(parts: Sequence[StagePart]) -> tuple[StagePart, ...]:
    """Returns the parts, with dependent single-block neighbours merged: a barrier between them
    would make all others wait, too."""
    found: list[StagePart] = []
    for part in parts:
        before = found[-1] if found else None
        if before is not None and before.blocks == part.blocks == 1 and depends(part, before):
            found[-1] = StagePart(
                kernels=(*before.kernels, *part.kernels),
                blocks=1,
                reads=tuple(sorted({*before.reads, *part.reads})),
                writes=tuple(sorted({*before.writes, *part.writes})),
            )
        else:
            found.append(part)
    return tuple(found)


def _meet(some: Iterable[Span], others: Sequence[Span]) -> bool:
    return any(each.overlaps(other) for each in some for other in others)
