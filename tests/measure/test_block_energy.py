from __future__ import annotations

import pytest

from tunegate.measure.pair_bench import BlockEnergy, block_energy, side_energy
from tunegate.ports import EnergyReading


def test_a_block_used_what_the_counter_went_on_by() -> None:
    before, after = EnergyReading(5.0, "rapl"), EnergyReading(7.5, "rapl")
    assert block_energy(before, after, 20) == (2.5, 20, "rapl")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, EnergyReading(1.0, "rapl")),
        (EnergyReading(1.0, "rapl"), None),
        (EnergyReading(1.0, "rapl+nvml"), EnergyReading(2.0, "nvml")),
    ],
)
def test_a_counter_that_falls_silent_says_nothing_of_the_block(
    before: EnergyReading | None, after: EnergyReading | None
) -> None:
    assert block_energy(before, after, 20) is None


def test_an_inference_used_its_share_of_all_blocks() -> None:
    found = side_energy([BlockEnergy(2.0, 10, "rapl"), BlockEnergy(4.0, 30, "rapl")])
    assert found is not None
    assert found.joules == pytest.approx(0.15)
    assert found.source == "rapl"


def test_half_of_the_blocks_or_a_counter_that_stands_still_are_no_measurement() -> None:
    assert side_energy([BlockEnergy(2.0, 10, "rapl"), None]) is None
    assert side_energy([BlockEnergy(0.0, 10, "nvml")]) is None
    assert side_energy([]) is None
