"""The energy of one inference of a cell, by the machine's counters."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from tunegate.artifacts.plans import EnergySource
from tunegate_study.studies import StudyCell


class CellEnergy(NamedTuple):
    """Joules, and the counters that measured them; None if none did."""

    joules: float | None
    source: EnergySource | None


def cell_energy(cell: StudyCell) -> CellEnergy:
    """Returns the median of the launches, None if one of them was not counted."""
    counted = [launch.joules for launch in cell.launches if launch.joules is not None]
    if counted and len(counted) == len(cell.launches):
        return CellEnergy(statistics.median(counted), cell.launches[0].energy_source)
    return CellEnergy(None, None)
