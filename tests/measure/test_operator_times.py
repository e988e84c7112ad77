from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.measure.test_measure import ScriptedBench, ScriptedBenchmarker
from tunegate.measure.measure_cells import operator_times


class SlowingMachine(ScriptedBenchmarker):
    """Every look at a model takes a millisecond more than the one before."""

    def __init__(self) -> None:
        super().__init__(ScriptedBench([]))
        self.looked: list[str] = []

    def operators_ms(self, artifact: Path) -> Mapping[str, float]:
        self.looked.append(artifact.name)
        return {"conv": 10.0 + len(self.looked), "only-in-" + artifact.name: 1.0}


def test_a_machine_that_slows_down_does_so_to_both_sides() -> None:
    times = operator_times(Path("a"), Path("b"), SlowingMachine())
    assert times["base"]["conv"] == times["head"]["conv"] == pytest.approx(12.5)


def test_each_side_has_its_own_operators_and_as_many_looks() -> None:
    machine = SlowingMachine()
    times = operator_times(Path("a"), Path("b"), machine)
    assert [set(times[side]) for side in ("base", "head")] == [
        {"conv", "only-in-a"},
        {"conv", "only-in-b"},
    ]
    assert machine.looked == ["a", "b", "b", "a"]
