from __future__ import annotations

import msgspec
import pytest

from tests.plugin.study.synthetic import REFERENCE_MS, cell
from tunegate.artifacts.cost import EnergySource
from tunegate.artifacts.studies import StudyCell
from tunegate.study.cell_energy import cell_energy


def counted(
    *joules: float | None, watts: float | None = None, source: EnergySource = "rapl"
) -> StudyCell:
    made = cell({"model": "a"}, [0.0] * len(joules))
    launches = tuple(
        msgspec.structs.replace(launch, joules=each, energy_source=None if each is None else source)
        for launch, each in zip(made.launches, joules, strict=True)
    )
    return msgspec.structs.replace(made, launches=launches, watts=watts)


def test_counters_come_before_declared_watts() -> None:
    assert cell_energy(counted(0.2, 0.4, 0.3, watts=50.0)) == (0.3, "rapl")


def test_one_launch_that_was_not_counted_makes_a_proxy_of_all() -> None:
    joules, source = cell_energy(counted(0.2, None, watts=50.0))
    assert joules == pytest.approx(50.0 * REFERENCE_MS / 1e3)
    assert source == "declared"


def test_where_nothing_tells_it_there_is_none() -> None:
    assert cell_energy(counted(None, None)) == (None, None)
    assert cell_energy(counted(watts=50.0)) == (None, None)
