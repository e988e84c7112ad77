"""The energy of timed blocks: counters of the machine, read before and after each."""

from __future__ import annotations

from typing import NamedTuple

from tunegate.artifacts.cost import EnergySource
from tunegate.tuning.costs.energy_counter import EnergyReading


class BlockEnergy(NamedTuple):
    """The energy that the machine used during a number of inferences."""

    joules: float
    inferences: int
    source: EnergySource


def block_energy(
    before: EnergyReading | None, after: EnergyReading | None, inferences: int
) -> BlockEnergy | None:
    """Returns what is between two readings; None where a counter is silent, or became so."""
    if before is None or after is None or before.source != after.source:
        return None
    return BlockEnergy(after.joules - before.joules, inferences, after.source)


class SideEnergy(NamedTuple):
    """The joules of one inference."""

    joules: float
    source: EnergySource


def side_energy(blocks: list[BlockEnergy | None]) -> SideEnergy | None:
    """The mean over all inferences of these blocks; None where one of them was not counted, or the
    counter has not moved: it is too coarse for them."""
    known = [block for block in blocks if block is not None]
    joules = sum(block.joules for block in known)
    if len(known) < len(blocks) or joules <= 0:
        return None
    return SideEnergy(joules / sum(block.inferences for block in known), known[0].source)
