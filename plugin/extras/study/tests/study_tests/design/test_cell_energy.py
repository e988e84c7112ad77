from __future__ import annotations

import msgspec

from study_tests.design.synthetic import cell
from tunegate.artifacts.plans import EnergySource
from tunegate_study.design.cell_energy import cell_energy
from tunegate_study.studies import StudyCell


def counted(*joules: float | None, source: EnergySource = "rapl") -> StudyCell:
    made = cell({"model": "a"}, [0.0] * len(joules))
    launches = tuple(
        msgspec.structs.replace(launch, joules=each, energy_source=None if each is None else source)
        for launch, each in zip(made.launches, joules, strict=True)
    )
    return msgspec.structs.replace(made, launches=launches)


def test_the_energy_of_a_cell_is_the_median_of_its_launches() -> None:
    assert cell_energy(counted(0.2, 0.4, 0.3)) == (0.3, "rapl")


def test_where_one_launch_was_not_counted_there_is_none() -> None:
    assert cell_energy(counted(0.2, None)) == (None, None)
    assert cell_energy(counted()) == (None, None)
