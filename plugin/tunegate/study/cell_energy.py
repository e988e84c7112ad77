"""The energy of one inference of a cell: counted, or by declared watts, which is a proxy."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from tunegate.artifacts.cost import EnergySource
from tunegate.artifacts.studies import StudyCell


class CellEnergy(NamedTuple):
    """Joules, and what tells them; None where nothing does."""

    joules: float | None
    source: EnergySource | None


def cell_energy(cell: StudyCell) -> CellEnergy:
    """The median of the launches. One that was not counted makes all of them a proxy."""
    counted = [launch.joules for launch in cell.launches if launch.joules is not None]
    if counted and len(counted) == len(cell.launches):
        return CellEnergy(statistics.median(counted), cell.launches[0].energy_source)
    if cell.watts is None or not cell.launches:
        return CellEnergy(None, None)
    seconds = statistics.median(launch.ms for launch in cell.launches) / 1e3
    return CellEnergy(cell.watts * seconds, "declared")
