"""A step of a block: its share of a part, or a barrier."""

from __future__ import annotations

import msgspec


class Run(msgspec.Struct, frozen=True, tag=True):
    """The blocks of a part from `first` to before `stop`, every `step`-th."""

    part: int
    first: int
    stop: int
    step: int = 1

    def blocks(self) -> range:
        return range(self.first, self.stop, self.step)


class Barrier(msgspec.Struct, frozen=True, tag=True):
    """All blocks wait here for each other; the number is that of the stage that ends."""

    stage: int


Steps = tuple[Run | Barrier, ...]
"""The steps of one block, in order."""
