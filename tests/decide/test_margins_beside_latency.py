"""Energy, the time to load and the layers that differ are tests of their own."""

import math
import random
from collections.abc import Sequence

import msgspec
import numpy as np
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
from tests.support.waivers import TODAY, make_waiver
from tunegate.artifacts.measurements import (
    CellMeasurement,
    Comparison,
    DifferingLayers,
    EnergyChange,
    Launch,
    LayersLaunch,
)
from tunegate.artifacts.plans import EnergySource
from tunegate.artifacts.verdicts import SEVERITY
from tunegate.config import GateConfig
from tunegate.decide.compare import compare
from tunegate.decide.margins_beside_latency import (
    check_energy,
    check_load,
    energy_change,
    layers_change,
)
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


# The layers that differ have a margin far below what the time of the whole model tells.


def with_layers(
    measured: CellMeasurement, slower_ms: Sequence[float], problem: str = ""
) -> CellMeasurement:
    launches = tuple(
        LayersLaunch(
            whole_ms=100.0, base_ms=5.0, head_ms=5.0 + ms, seconds=1.0, largest={"conv3": ms}
        )
        for ms in slower_ms
    )
    layers = DifferingLayers(launches=launches, analyses=(4, 6), problem=problem)
    return msgspec.structs.replace(measured, layers=layers)


SLOWER = (1.0, 1.01, 1.0, 0.99)


@pytest.mark.parametrize(
    ("slower_ms", "status", "said"),
    [
        (SLOWER, "fail", "5 to 6 ms, +1% by conv3), over its 0.5% margin"),
        ((0.01, 0.02, -0.01, 0.0), "pass", "), within its 0.5% margin"),
        ((2.0, -1.0, 3.0, -2.0), "inconclusive", ") spans its 0.5% margin"),
    ],
)
def test_a_layer_that_surely_slows_the_model_fails_by_name(
    slower_ms: Sequence[float], status: str, said: str
) -> None:
    gate = GateConfig(layers_margin_percent=0.5)
    found = verdict(with_layers(make_measurement(SAME_BUT), slower_ms), Policies(), gate)
    assert found.status == status
    (finding,) = found.findings
    assert said in finding.reason
    assert finding.layers is not None


SAME_BUT = [0.008, 0.009, 0.007, 0.008]
"""The whole model may be slower by a percent: it keeps its margin of 3%."""


def test_layers_that_were_not_timed_are_no_pass_and_without_the_key_nothing_is_asked() -> None:
    measured = with_layers(make_measurement(SAME_BUT), (), "no answer in 120 s")
    assert verdict(measured, Policies(), GateConfig(layers_margin_percent=0.5)).status == (
        "inconclusive"
    )
    assert verdict(measured, Policies(), GateConfig()).status == "pass"


def test_a_change_that_the_rest_of_the_model_regains_is_no_fail() -> None:
    faster = make_measurement([-0.05, -0.051, -0.05, -0.049])
    gate = GateConfig(layers_margin_percent=0.5)
    assert verdict(with_layers(faster, SLOWER), Policies(), gate).status == "pass"


def test_a_waiver_of_the_model_covers_its_layers_up_to_the_ceiling() -> None:
    measured = with_layers(make_measurement(SAME_BUT), SLOWER)
    for ceiling, status in ((8.0, "waived"), (1.0, "fail")):
        policies = Policies(waivers=(make_waiver(ceiling_percent=ceiling),), today=TODAY)
        found = verdict(measured, policies, GateConfig(layers_margin_percent=0.5))
        assert found.status == status


@given(EFFECTS, st.lists(st.floats(-4.0, 50.0), min_size=1, max_size=8), st.floats(0.1, 20.0))
def test_layers_never_turn_a_red_model_green(
    effects: Sequence[float], slower_ms: Sequence[float], margin: float
) -> None:
    measured = make_measurement([0.2 + abs(effect) / 10 for effect in effects])
    alone = verdict(measured, Policies(), GateConfig())
    gate = GateConfig(layers_margin_percent=margin)
    both = verdict(with_layers(measured, slower_ms), Policies(), gate)
    assert SEVERITY.index(both.status) <= SEVERITY.index(alone.status)


@given(st.integers(0, 2**32), st.sampled_from([0.5, 1.0, 3.0]))
def test_wider_layers_margins_fail_no_sooner(seed: int, margin: float) -> None:
    random = np.random.default_rng(seed)
    layers = with_layers(
        make_measurement(SAME_BUT), random.normal(1.0, 1.0, 6).clip(-5).tolist()
    ).layers
    narrow, wide = (layers_change(layers, each, cells=1) for each in (margin, 2 * margin))
    assert narrow is not None
    assert wide is not None
    assert wide.decision != "fail" or narrow.decision == "fail"
    assert narrow.decision != "pass" or wide.decision == "pass"
