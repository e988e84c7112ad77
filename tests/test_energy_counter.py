from __future__ import annotations

from tunegate.ports import NO_COUNTER, EnergyCounter


def test_a_machine_without_a_counter_says_nothing() -> None:
    counter: EnergyCounter = NO_COUNTER
    assert counter.reading() is None
