"""Joules by counters and by declared watts, and a cap that is never passed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.cost import Cost
from tunegate.tuning.costs.energy_counter import NO_COUNTER, EnergyReading
from tunegate.tuning.costs.energy_use import RESERVE_SECONDS, EnergyUse, total_energy


class HandCounter:
    """A counter that a test moves, and silences."""

    def __init__(self, joules: float = 0.0) -> None:
        self.now: float | None = joules

    def reading(self) -> EnergyReading | None:
        return None if self.now is None else EnergyReading(self.now, "rapl")


def test_only_what_is_used_from_the_beginning_on_counts() -> None:
    counter = HandCounter(500.0)
    use = EnergyUse(counter, watts=100.0)
    counter.now = 530.0
    assert (use.joules(2.0), use.source) == (30.0, "rapl")


def test_without_a_counter_the_declared_watts_are_a_proxy() -> None:
    use = EnergyUse(NO_COUNTER, watts=100.0)
    assert (use.joules(2.0), use.joules(1.0), use.source) == (200.0, 200.0, "declared")


def test_without_either_nothing_is_known() -> None:
    use = EnergyUse(NO_COUNTER, watts=None)
    assert (use.joules(2.0), use.source) == (None, None)
    assert use.seconds_left(2.0, 1e9) == 0.0


def test_a_counter_that_falls_silent_is_replaced_from_there_on() -> None:
    counter = HandCounter()
    use = EnergyUse(counter, watts=100.0)
    counter.now = 50.0
    assert use.joules(1.0) == 50.0
    counter.now = None
    assert (use.joules(3.0), use.source) == (250.0, "declared")
    counter.now = 60.0
    assert (use.joules(4.0), use.source) == (350.0, "declared")


def test_what_is_left_goes_by_the_highest_power_so_far() -> None:
    counter = HandCounter()
    use = EnergyUse(counter, watts=50.0)
    assert use.seconds_left(0.0, 1000.0) == pytest.approx(20 - RESERVE_SECONDS)
    counter.now = 200.0
    assert use.seconds_left(1.0, 1000.0) == pytest.approx(800 / 200 - RESERVE_SECONDS)
    counter.now = 210.0
    assert use.seconds_left(2.0, 1000.0) == pytest.approx(790 / 200 - RESERVE_SECONDS)


@given(
    st.floats(1.0, 1e3),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=50),
    st.floats(0.0, 1e5),
    st.floats(0.0, 4.0),
)
def test_a_run_that_stops_when_nothing_is_left_never_passes_its_cap(
    watts: float, loads: list[float], cap: float, late: float
) -> None:
    """It draws no more than was declared, looks every half second and ends up to four late."""
    counter = HandCounter()
    use = EnergyUse(counter, watts)
    seconds = 0.0
    drawn = 0.0
    for _ in range(20):
        for load in loads:
            if use.seconds_left(seconds, cap) <= 0:
                assert drawn == 0.0 or drawn + late * watts <= cap * (1 + 1e-9)
                return
            drawn += load * watts * 0.5
            seconds += 0.5
            counter.now = drawn


def test_a_sum_with_a_proxy_in_it_is_a_proxy() -> None:
    counted = Cost(seconds=1.0, joules=2.0, energy_source="rapl")
    declared = Cost(seconds=1.0, joules=3.0, energy_source="declared")
    assert total_energy([counted, counted]) == (4.0, "rapl")
    assert total_energy([counted, declared]) == (5.0, "declared")
    assert total_energy([counted, Cost(seconds=1.0)]) == (None, None)
    assert total_energy([]) == (None, None)
