"""What a whole model consists of: loop nests that write buffers, in the order of the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

SpanPlace = Literal["input", "arena", "weight"]


class Span(msgspec.Struct, frozen=True, order=True):
    """The bytes from `start` to before `end` of the arena, of the weights, or of all inputs, one
    after the other."""

    place: SpanPlace
    start: int
    end: int

    def overlaps(self, other: Span) -> bool:
        """Returns whether some byte is in both."""
        same = self.place == other.place
        return same and self.start < other.end and other.start < self.end


class StagePart(msgspec.Struct, frozen=True):
    """A loop nest whose iterations, its `blocks`, may run at once; `kernels` are numbers of the
    functions that it calls, one after the other. More than one only where there is one block."""

    kernels: tuple[int, ...]
    blocks: int
    reads: tuple[Span, ...]
    writes: tuple[Span, ...]


def depends(later: StagePart, earlier: StagePart) -> bool:
    """Returns whether the later part must wait: one of them writes what the other has to do
    with."""
    return (
        _meet(earlier.writes, later.reads)
        or _meet(earlier.writes, later.writes)
        or _meet(earlier.reads, later.writes)
    )


def joined(parts: Sequence[StagePart]) -> tuple[StagePart, ...]:
    """The parts, where neighbours of one block, of which the second waits for the first, are one: a
    barrier between them would make all others wait, too."""
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
