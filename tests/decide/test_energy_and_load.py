"""The energy of an inference, by counters alone, and the time to load are tests of their own."""

import math
import random
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decide.test_checks import SAME, verdict
from tests.support.measured_cells import (
    make_build,
    make_builds,
    make_launches,
    make_measurement,
    make_run,
)
from tunegate.artifacts.measurements import CellMeasurement, Comparison, EnergyChange, Launch
from tunegate.artifacts.plans import EnergySource
from tunegate.config import GateConfig
from tunegate.decide.compare import compare
from tunegate.decide.energy_and_load import check_energy, check_load, energy_change
from tunegate.review.gate_rules import Policies

EFFECTS = st.lists(st.floats(-0.3, 0.3), min_size=2, max_size=12)


def counted(effects: Sequence[float], source: EnergySource = "rapl") -> list[Launch]:
    """Launches that are as fast as each other, and use more energy by these logarithms."""
    return [
        msgspec.structs.replace(
            launch, base_joules=2.0, head_joules=2.0 * math.exp(effect), energy_source=source
        )
        for launch, effect in zip(make_launches([0.0] * len(effects)), effects, strict=True)
    ]


def judged(launches: Sequence[Launch], margin: float | None = 5.0) -> EnergyChange:
    found = energy_change(launches, margin, analyses=1, cells=1)
    assert found is not None
    assert found.change_percent is not None
    return found


def near(center: float, count: int = 9, seed: int = 3) -> list[Launch]:
    rng = random.Random(seed)
    return counted([rng.gauss(center, 0.01) for _ in range(count)])


@pytest.mark.parametrize(
    ("center", "decision"), [(0.0, "pass"), (0.2, "fail"), (math.log(1.05), "undecided")]
)
def test_more_joules_than_the_margin_fail(center: float, decision: str) -> None:
    assert judged(near(center)).decision == decision


def test_without_a_margin_the_joules_are_told_and_nothing_is_decided() -> None:
    found = judged(near(0.2), None)
    assert (found.decision, found.source, found.base_joules) == (None, "rapl", 2.0)


def test_half_of_the_launches_or_two_kinds_of_counters_are_no_measurement() -> None:
    launches = near(0.2)
    silent = msgspec.structs.replace(
        launches[0], base_joules=None, head_joules=None, energy_source=None
    )
    other = msgspec.structs.replace(launches[0], energy_source="nvml")
    for first in (silent, other):
        assert energy_change([first, *launches[1:]], 5.0, analyses=1, cells=1) is None
    for few in ([], launches[:1], make_launches([0.0] * 4)):
        assert energy_change(few, 5.0, analyses=1, cells=1) is None


@given(EFFECTS, st.sampled_from([0.5, 3.0, 10.0]), st.sampled_from([20.0, 60.0]))
def test_a_wider_margin_and_more_cells_fail_no_sooner(
    effects: list[float], margin: float, wider: float
) -> None:
    launches = counted(effects)
    if judged(launches, margin).decision != "fail":
        assert judged(launches, wider).decision != "fail"
        many = energy_change(launches, margin, analyses=4, cells=9)
        assert many is not None
        assert many.decision != "fail"


def test_a_change_on_the_margin_hardly_ever_fails() -> None:
    """One in a hundred may; three times as many are no accident."""
    runs = [judged(near(math.log(1.05), 6, seed)).decision for seed in range(300)]
    assert runs.count("fail") <= 9


# The energy of an inference has a margin of its own, and only counters tell it.


def with_joules(measured: CellMeasurement, factors: Sequence[float]) -> CellMeasurement:
    launches = tuple(
        msgspec.structs.replace(x, base_joules=2.0, head_joules=2.0 * more, energy_source="rapl")
        for x, more in zip(measured.launches, factors, strict=True)
    )
    return msgspec.structs.replace(measured, launches=launches)


def with_loads(measured: CellMeasurement, factors: Sequence[float]) -> CellMeasurement:
    launches = tuple(
        msgspec.structs.replace(x, load_ms=(80.0, 80.0 * more))
        for x, more in zip(measured.launches, factors, strict=True)
    )
    return msgspec.structs.replace(measured, launches=launches)


@pytest.mark.parametrize(
    ("factors", "status", "said"),
    [
        ((1.2, 1.21, 1.2, 1.19), "fail", "), over its 5% margin"),
        ((1.0, 1.001, 1.0, 0.999), "pass", "), within its 5% margin"),
        ((0.8, 1.4, 0.9, 1.2), "inconclusive", ") spans its 5% margin"),
    ],
)
def test_more_energy_or_time_to_load_fails_where_it_has_a_margin(
    factors: Sequence[float], status: str, said: str
) -> None:
    same = make_measurement(SAME)
    energy = check_energy(compared(with_joules(same, factors)), 5.0)
    load = check_load(compared(with_loads(same, factors)), 5.0)
    for judged, unit in ((energy, " J by rapl"), (load, " ms of the processor")):
        assert judged is not None
        assert judged.status == status
        assert unit + said in judged.reason


def test_a_margin_of_loading_that_was_not_measured_is_no_pass() -> None:
    measured = make_measurement(SAME)
    judged = check_load(compared(measured), 5.0)
    assert judged is not None
    assert judged.status == "inconclusive"
    assert check_load(compared(with_loads(measured, [9.0] * 4)), None) is None


def compared(measured: CellMeasurement) -> Comparison:
    builds = make_builds(make_build("a"), make_build("b"))
    gate = GateConfig(energy_margin_percent=5.0, load_margin_percent=5.0)
    (found,) = compare(make_run(measured, builds), gate)
    return found


def test_a_margin_of_energy_that_no_counter_can_tell_is_no_pass() -> None:
    gate = GateConfig(energy_margin_percent=5.0)
    judged = verdict(make_measurement(SAME), Policies(), gate)
    assert judged.status == "invalid-env"
    assert "no counter of it can be read here" in judged.findings[0].reason
    assert "remove gate.energy-margin-percent, which counts once it is" in judged.findings[0].reason
    assert judged.findings[0].energy is None


def test_energy_is_told_without_a_margin_and_judged_by_none() -> None:
    measured = with_joules(make_measurement(SAME), (1.5, 1.5, 1.51, 1.5))
    judged = verdict(measured, Policies(), GateConfig())
    assert judged.status == "pass"
    assert judged.findings[0].energy is not None
    assert judged.findings[0].energy.decision is None
