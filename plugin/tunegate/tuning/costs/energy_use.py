"""The joules of a run: by the machine's counters, and by declared watts where these are silent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tunegate.artifacts.cost import Cost, EnergySource
from tunegate.tuning.costs.energy_counter import EnergyCounter

RESERVE_SECONDS = 5.0
"""A run ends up to this late, so what it may draw until then is kept back."""
_LEAST_SECONDS = 0.2
"""Power over a shorter time says more about the counter's steps than about the machine."""


class TotalEnergy(NamedTuple):
    """Joules and where they come from; None where one part is not known."""

    joules: float | None
    source: EnergySource | None


def total_energy(costs: Sequence[Cost]) -> TotalEnergy:
    """The sum. It is a proxy where a part of it is; of several counters the first is named."""
    known = [cost.joules for cost in costs if cost.joules is not None]
    if not costs or len(known) < len(costs):
        return TotalEnergy(None, None)
    sources = {cost.energy_source for cost in costs}
    return TotalEnergy(sum(known), "declared" if "declared" in sources else costs[0].energy_source)


class EnergyUse:
    """What has been used since the beginning. `watts` is what the target is declared to draw.

    A counter that falls silent is replaced by the declared watts from there on, and what it has
    counted stays: the sum never falls, and its source is `declared` from then on.
    """

    def __init__(self, counter: EnergyCounter, watts: float | None) -> None:
        self._counter, self._watts = counter, watts
        first = counter.reading()
        self._counted_before = 0.0 if first is None else first.joules
        self.source: EnergySource | None = _declared(watts) if first is None else first.source
        self._is_counted = first is not None
        self._seconds, self._joules = 0.0, 0.0
        self._peak_watts = watts or 0.0

    def joules(self, seconds: float) -> float | None:
        """The joules of a run that has taken so many seconds, or None where nothing tells them."""
        if seconds - self._seconds >= _LEAST_SECONDS or not self._is_counted:
            self._advance(max(self._seconds, seconds))
        return None if self.source is None else self._joules

    def seconds_left(self, seconds: float, cap_joules: float) -> float:
        """How long a run may go on that has taken so many seconds: at the highest power that was
        declared or seen, and less the reserve."""
        left = cap_joules - (self.joules(seconds) or 0.0)
        return left / self._peak_watts - RESERVE_SECONDS if self._peak_watts else 0.0

    def _advance(self, seconds: float) -> None:
        took = seconds - self._seconds
        joules = self._counted() if self._is_counted else None
        if joules is None:
            self._is_counted, self.source = False, _declared(self._watts)
            joules = self._joules + (self._watts or 0.0) * took
        if took:
            self._peak_watts = max(self._peak_watts, (joules - self._joules) / took)
        self._seconds, self._joules = seconds, max(self._joules, joules)

    def _counted(self) -> float | None:
        reading = self._counter.reading()
        return None if reading is None else reading.joules - self._counted_before


def _declared(watts: float | None) -> EnergySource | None:
    return None if watts is None else "declared"
