"""The timed blocks of one launch, side by side, and how the device was after each."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import TypeVar

from tunegate.artifacts.changes import Side
from tunegate.artifacts.gpus import GpuState
from tunegate.artifacts.measurements import Clocks
from tunegate.edges.bench.block_energy import BlockEnergy, SideEnergy, side_energy
from tunegate.edges.bench.sides import Sides
from tunegate.gate.clocks import clocks_of, kept_pairs

_Of = TypeVar("_Of")


class Blocks:
    """Block number n of both sides is pair n."""

    def __init__(self) -> None:
        self._times: Sides[list[Sequence[float]]] = Sides([], [])
        self._states: Sides[list[GpuState]] = Sides([], [])
        self._energies: Sides[list[BlockEnergy | None]] = Sides([], [])

    def add(
        self,
        side: Side,
        times_ms: Sequence[float],
        state: GpuState | None,
        energy: BlockEnergy | None = None,
    ) -> None:
        self._times.of(side).append(times_ms)
        self._states.of(side).append(state or GpuState())
        self._energies.of(side).append(energy)

    @property
    def pairs(self) -> int:
        """Returns the number of block pairs that were made."""
        return len(self._times.head)

    def times(self, side: Side) -> list[float]:
        """The times of every inference of the pairs that count."""
        return [ms for block in self._counted(side) for ms in block]

    def counted_medians(self) -> Sides[list[float]]:
        """Returns the median of each block that counts, of the base and of the head."""
        return self._of_each_block(statistics.median)

    def counted_means(self) -> Sides[list[float]]:
        """Returns the mean of each block that counts, of the base and of the head."""
        return self._of_each_block(statistics.fmean)

    def clocks(self) -> Clocks | None:
        return clocks_of(*self._states)

    def energy(self, side: Side) -> SideEnergy | None:
        """The energy of one inference, over the pairs that count."""
        return side_energy(self._kept(self._energies.of(side)))

    def _of_each_block(self, found: Callable[[Sequence[float]], float]) -> Sides[list[float]]:
        counted = Sides(self._counted("base"), self._counted("head"))
        return counted.each(lambda blocks: [found(block) for block in blocks])

    def _counted(self, side: Side) -> list[Sequence[float]]:
        return self._kept(self._times.of(side))

    def _kept(self, every: list[_Of]) -> list[_Of]:
        """Returns the blocks that count, or all where none does: then the launch does not count
        either."""
        kept = kept_pairs(*self._states)
        return [block for block, keep in zip(every, kept, strict=True) if keep] or every
