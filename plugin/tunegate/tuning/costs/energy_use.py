"""The joules of a run, by the machine's counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tunegate.artifacts.cost import Cost, EnergySource
from tunegate.tuning.costs.energy_counter import EnergyCounter


class TotalEnergy(NamedTuple):
    """A sum of joules and its counters; None where one part is unknown."""

    joules: float | None
    source: EnergySource | None


NOT_COUNTED = TotalEnergy(None, None)


def total_energy(costs: Sequence[Cost]) -> TotalEnergy:
    """The sum; of several sources the first is named."""
    known = [cost.joules for cost in costs if cost.joules is not None]
    if not costs or len(known) < len(costs):
        return NOT_COUNTED
    return TotalEnergy(sum(known), costs[0].energy_source)


class EnergyUse:
    """Counts what the machine uses from here on."""

    def __init__(self, counter: EnergyCounter) -> None:
        self._counter = counter
        self._first = counter.reading()

    def total(self) -> TotalEnergy:
        """Returns what has been used so far, and nothing while the counter is silent."""
        now = self._counter.reading()
        if now is None or self._first is None:
            return NOT_COUNTED
        return TotalEnergy(now.joules - self._first.joules, self._first.source)
