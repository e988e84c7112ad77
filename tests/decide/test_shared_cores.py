"""A scheduler that gives the core to another program in turns."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from tests.support.measured_cells import (
    make_build,
    make_builds,
    make_measurement,
    make_probes,
    make_run,
)
from tests.support.simulated.simulated_launches import launch_of
from tunegate.artifacts.measurements import Comparison, Launch
from tunegate.config import GateConfig
from tunegate.decide.compare import compare

TURN_MS = 3.0


def wall_ms(rng: np.random.Generator, cpu_ms: float, count: int) -> list[float]:
    """Inferences of so much work, one after the other; another program has every second turn."""
    times, at = [], rng.uniform(0, TURN_MS)
    for _ in range(count):
        work = cpu_ms * math.exp(rng.normal(0.0, 0.01))
        turns = int((at + work) // TURN_MS)
        at = (at + work) % TURN_MS
        times.append(work + turns * TURN_MS)
    return times


def launch(rng: np.random.Generator, change: float) -> Launch:
    work = (TURN_MS, TURN_MS * (1 + change))
    blocks = [[wall_ms(rng, each, 20) for each in work] for _ in range(12)]
    return launch_of(np.array(blocks))


def compared(change: float) -> Comparison:
    rng = np.random.default_rng(4)
    launches = tuple(launch(rng, change) for _ in range(9))
    measured = make_measurement([0.0, 0.0], probes=make_probes([0.0, 0.0], 15))
    measured = msgspec.structs.replace(measured, launches=launches)
    run = make_run(measured, make_builds(make_build("a"), make_build("b")))
    (found,) = compare(run, GateConfig())
    return found


@pytest.mark.parametrize("percent", [34, 20])
def test_the_interval_has_the_part_of_a_change_that_the_median_misses(percent: int) -> None:
    """The median of such inferences is half of it: most wait for one turn on either side."""
    found = compared(percent / 100)
    assert found.change_percent is not None
    assert found.change_percent.center < 0.75 * percent
    assert found.change_percent.low < percent
    assert found.change_percent.high == pytest.approx(percent, abs=1.0)
    assert found.decision == "fail"


def test_without_a_change_the_interval_stays_as_narrow_as_the_median_is() -> None:
    found = compared(0.0)
    assert found.change_percent is not None
    assert -1 < found.change_percent.low < found.change_percent.high < 1
    assert found.change_percent.center == pytest.approx(0.0, abs=0.2)
