"""The timed blocks of one launch, side by side, and how the device was after each."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tunegate.artifacts.gpus import GpuState
from tunegate.artifacts.measurements import Clocks
from tunegate.gate.clocks import clocks_of, kept_pairs


class Blocks:
    """Side 0 is the base, side 1 the head; block number n of both is pair n."""

    def __init__(self) -> None:
        self._times: tuple[list[Sequence[float]], list[Sequence[float]]] = ([], [])
        self._states: tuple[list[GpuState], list[GpuState]] = ([], [])

    def add(self, side: int, times_ms: Sequence[float], state: GpuState | None) -> None:
        self._times[side].append(times_ms)
        self._states[side].append(state or GpuState())

    @property
    def pairs(self) -> int:
        """All that were made."""
        return len(self._times[1])

    def times(self, side: int) -> list[float]:
        """Of every inference of the pairs that count."""
        return [ms for block in self._counted(side) for ms in block]

    def counted_medians(self) -> tuple[list[float], list[float]]:
        """Of each block."""
        base, head = ([statistics.median(block) for block in self._counted(n)] for n in (0, 1))
        return base, head

    def counted_means(self) -> tuple[list[float], list[float]]:
        """Of each block."""
        base, head = ([statistics.fmean(block) for block in self._counted(n)] for n in (0, 1))
        return base, head

    def clocks(self) -> Clocks | None:
        return clocks_of(*self._states)

    def _counted(self, side: int) -> list[Sequence[float]]:
        """All of them where none counts: then the launch does not, and what it took is told."""
        kept = kept_pairs(*self._states)
        every = self._times[side]
        return [block for block, keep in zip(every, kept, strict=True) if keep] or every
