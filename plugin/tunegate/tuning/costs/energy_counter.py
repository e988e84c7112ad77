"""The port of the counters of energy. The real ones live in `edges/energy/`."""

from __future__ import annotations

from typing import Protocol

import msgspec

from tunegate.artifacts.cost import EnergySource


class EnergyReading(msgspec.Struct, frozen=True):
    """The energy that the machine has used since its counters were opened, and its source."""

    joules: float
    source: EnergySource


class EnergyCounter(Protocol):
    """Counters of energy. They count the whole machine, whoever uses it, idle power included."""

    def reading(self) -> EnergyReading | None:
        """The sum so far, which never falls; None where there is no counter, or none any more."""
        ...


class NoCounter:
    """A machine that counts nothing."""

    def reading(self) -> None:
        return None


NO_COUNTER = NoCounter()
