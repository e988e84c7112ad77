"""Joules by the counters of a machine."""

from __future__ import annotations

from tunegate.artifacts.plans import Cost
from tunegate.ports import NO_COUNTER, EnergyReading
from tunegate.tune.budget import EnergyUse, total_energy


class HandCounter:
    """A counter that a test moves, and silences."""

    def __init__(self, joules: float = 0.0) -> None:
        self.now: float | None = joules

    def reading(self) -> EnergyReading | None:
        return None if self.now is None else EnergyReading(self.now, "rapl")


def test_only_what_is_used_from_the_beginning_on_counts() -> None:
    counter = HandCounter(500.0)
    use = EnergyUse(counter)
    counter.now = 530.0
    assert use.total() == (30.0, "rapl")


def test_without_a_counter_nothing_is_known() -> None:
    assert EnergyUse(NO_COUNTER).total() == (None, None)


def test_a_counter_that_falls_silent_leaves_the_sum_unknown() -> None:
    counter = HandCounter()
    use = EnergyUse(counter)
    counter.now = None
    assert use.total() == (None, None)


def test_a_sum_is_known_where_all_parts_are() -> None:
    counted = Cost(seconds=1.0, joules=2.0, energy_source="rapl")
    assert total_energy([counted, counted]) == (4.0, "rapl")
    assert total_energy([counted, Cost(seconds=1.0)]) == (None, None)
    assert total_energy([]) == (None, None)
