"""Energy, the time to load and the layers that differ are tests of their own."""

import math
import random
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.decide.test_gate import SAME, verdict
from tests.support.measured_cells import (
    DEVICE,
    TARGET,
    make_build,
    make_builds,
    make_launches,
    make_measurement,
    make_run,
    make_task,
)
from tests.support.present import present
from tests.support.waivers import TODAY, make_waiver
from tunegate.artifacts.builds import BuiltTask, Cell
from tunegate.artifacts.measurements import (
    CellMeasurement,
    Comparison,
    DifferingLayers,
    EnergyChange,
    Launch,
    LayersLaunch,
    MeasurementRun,
)
from tunegate.artifacts.plans import EnergySource
from tunegate.artifacts.verdicts import SEVERITY
from tunegate.config import GateConfig
from tunegate.decide.compare import compare, operator_differences
from tunegate.decide.decision import bounds
from tunegate.decide.margins_beside_latency import (
    check_energy,
    check_load,
    energy_change,
    layers_change,
)
from tunegate.decide.sequential import PLANNED, affordable_analyses, is_hopeless
from tunegate.review.gate_rules import NO_POLICIES, Policies

EFFECTS = st.lists(st.floats(-0.3, 0.3), min_size=2, max_size=12)


def counted(effects: Sequence[float], source: EnergySource = "rapl") -> list[Launch]:
    """Launches that are as fast as each other, and use more energy by these logarithms."""
    return [
        replace(launch, base_joules=2.0, head_joules=2.0 * math.exp(effect), energy_source=source)
        for launch, effect in zip(make_launches([0.0] * len(effects)), effects, strict=True)
    ]


def judged(launches: Sequence[Launch], margin: float | None = 5.0) -> EnergyChange:
    found = present(energy_change(launches, margin, analyses=1, cells=1))
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
    silent = replace(launches[0], base_joules=None, head_joules=None, energy_source=None)
    other = replace(launches[0], energy_source="nvml")
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
        assert present(energy_change(launches, margin, analyses=4, cells=9)).decision != "fail"


def test_a_change_on_the_margin_hardly_ever_fails() -> None:
    """One in a hundred may; three times as many are no accident."""
    runs = [judged(near(math.log(1.05), 6, seed)).decision for seed in range(300)]
    assert runs.count("fail") <= 9


# The energy of an inference has a margin of its own, and only counters tell it.


def with_joules(measured: CellMeasurement, factors: Sequence[float]) -> CellMeasurement:
    launches = tuple(
        replace(x, base_joules=2.0, head_joules=2.0 * more, energy_source="rapl")
        for x, more in zip(measured.launches, factors, strict=True)
    )
    return replace(measured, launches=launches)


def with_loads(measured: CellMeasurement, factors: Sequence[float]) -> CellMeasurement:
    launches = tuple(
        replace(x, load_ms=(80.0, 80.0 * more))
        for x, more in zip(measured.launches, factors, strict=True)
    )
    return replace(measured, launches=launches)


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
    assert present(check_load(compared(measured), 5.0)).status == "inconclusive"
    assert check_load(compared(with_loads(measured, [9.0] * 4)), None) is None


def compared(measured: CellMeasurement) -> Comparison:
    builds = make_builds(make_build("a"), make_build("b"))
    gate = GateConfig(energy_margin_percent=5.0, load_margin_percent=5.0)
    (found,) = compare(make_run(measured, builds), gate)
    return found


def test_a_margin_of_energy_that_no_counter_can_tell_is_no_pass() -> None:
    gate = GateConfig(energy_margin_percent=5.0)
    judged = verdict(make_measurement(SAME), NO_POLICIES, gate)
    assert judged.status == "invalid-env"
    assert "no counter of it can be read here" in judged.findings[0].reason
    assert "remove gate.energy-margin-percent, which counts once it is" in judged.findings[0].reason
    assert judged.findings[0].energy is None


def test_energy_is_told_without_a_margin_and_judged_by_none() -> None:
    measured = with_joules(make_measurement(SAME), (1.5, 1.5, 1.51, 1.5))
    judged = verdict(measured, NO_POLICIES, GateConfig())
    assert judged.status == "pass"
    assert present(judged.findings[0].energy).decision is None


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
    return replace(measured, layers=layers)


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
    found = verdict(with_layers(make_measurement(SAME_BUT), slower_ms), NO_POLICIES, gate)
    assert found.status == status
    (finding,) = found.findings
    assert said in finding.reason
    assert finding.layers is not None


SAME_BUT = [0.008, 0.009, 0.007, 0.008]
"""The whole model may be slower by a percent: it keeps its margin of 3%."""


def test_layers_that_were_not_timed_are_no_pass_and_without_the_key_nothing_is_asked() -> None:
    measured = with_layers(make_measurement(SAME_BUT), (), "no answer in 120 s")
    assert verdict(measured, NO_POLICIES, GateConfig(layers_margin_percent=0.5)).status == (
        "inconclusive"
    )
    assert verdict(measured, NO_POLICIES, GateConfig()).status == "pass"


def test_a_change_that_the_rest_of_the_model_regains_is_no_fail() -> None:
    faster = make_measurement([-0.05, -0.051, -0.05, -0.049])
    gate = GateConfig(layers_margin_percent=0.5)
    assert verdict(with_layers(faster, SLOWER), NO_POLICIES, gate).status == "pass"


def test_a_waiver_of_the_model_covers_its_layers_up_to_the_ceiling() -> None:
    measured = with_layers(make_measurement(SAME_BUT), SLOWER)
    for ceiling, status in ((8.0, "waived"), (1.0, "fail")):
        policies = Policies(waivers=(make_waiver(ceiling_percent=ceiling),), today=TODAY)
        assert verdict(measured, policies, GateConfig(layers_margin_percent=0.5)).status == status


@given(EFFECTS, st.lists(st.floats(-4.0, 50.0), min_size=1, max_size=8), st.floats(0.1, 20.0))
def test_layers_never_turn_a_red_model_green(
    effects: Sequence[float], slower_ms: Sequence[float], margin: float
) -> None:
    measured = make_measurement([0.2 + abs(effect) / 10 for effect in effects])
    alone = verdict(measured, NO_POLICIES, GateConfig())
    gate = GateConfig(layers_margin_percent=margin)
    both = verdict(with_layers(measured, slower_ms), NO_POLICIES, gate)
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


# What both sides' launches say together.


def test_times_inside_the_model_decide_what_holds_a_difference() -> None:
    head = make_build("b", tasks=[make_task("conv", 9.0, source="transfer")])
    before = {"conv": 2.0, "pool": 1.0, "relu": 0.5, "gone": 0.3}
    after = {"conv": 3.0, "pool": 1.02, "relu": 0.5, "new": 0.4}
    measured = make_measurement((0.1,) * 4, task_ms={"base": before, "head": after})
    found = operator_differences(make_builds(make_build("a"), head), measured)
    expected = [("conv", 2.0, 3.0), ("new", None, 0.4), ("gone", 0.3, None)]
    assert [(d.name, d.base_ms, d.head_ms) for d in found] == expected
    assert [d.source for d in found] == ["transfer", "library", "library"]


@pytest.mark.parametrize(
    ("tasks", "title", "library"),
    [
        (1, "TVM and ONNX Runtime", "ONNX Runtime"),
        (0, "OpenVINO (int8)", "OpenVINO (int8)"),
        (0, "", "ONNX Runtime"),
    ],
)
def test_a_layer_without_schedule_runs_in_its_runtime(tasks: int, title: str, library: str) -> None:
    compiled = [make_task("matmul", 1.0)] * tasks
    head = replace(make_build("b", tasks=compiled), title=title)
    measured = make_measurement((0.1,) * 4, task_ms={"base": {}, "head": {"conv": 3.0}})
    (found,) = operator_differences(make_builds(make_build("a"), head), measured)
    assert (found.source, found.library) == ("library", library)


def test_without_times_inside_the_model_those_of_tuning_are_used() -> None:
    builds = make_builds(
        make_build("a", tasks=[make_task("conv", 1.0)]),
        make_build("b", tasks=[make_task("conv", 2.0, rid="other")]),
    )
    (found,) = operator_differences(builds, make_measurement((0.1,) * 4))
    assert (found.base_ms, found.head_ms) == (1.0, 2.0)


def test_a_layer_that_was_timed_on_one_side_alone_is_not_gone() -> None:
    untimed = replace(make_task("conv", 1.0), ms=None)
    builds = make_builds(
        make_build("a", tasks=[make_task("conv", 1.0)]), make_build("b", tasks=[untimed])
    )
    assert operator_differences(builds, make_measurement((0.1,) * 4)) == ()


def test_a_layer_with_another_workload_is_one_row_where_its_name_is_unmistakable() -> None:
    def renamed(workload: str, name: str, ms: float) -> BuiltTask:
        return replace(make_task(workload, ms), name=name)

    base = [renamed("a", "conv", 1.0), renamed("b", "mul", 2.0), renamed("c", "mul", 4.0)]
    head = [renamed("d", "conv", 6.0), renamed("e", "mul", 3.0)]
    builds = make_builds(make_build("a", tasks=base), make_build("b", tasks=head))
    found = operator_differences(builds, make_measurement((0.1,) * 4))
    expected = [("conv", 1.0, 6.0), ("mul", None, 3.0), ("mul", 2.0, None), ("mul", 4.0, None)]
    assert [(each.name, each.base_ms, each.head_ms) for each in found] == expected


@pytest.mark.parametrize("unknown", ["tiles", "prior"])
def test_no_layer_is_told_where_tuning_has_not_timed_what_a_side_runs(
    unknown: Literal["tiles", "prior"],
) -> None:
    """It is not gone: the same layer runs, and nobody knows how fast."""
    mul = make_task("mul", 2.0)
    base = make_build("a", tasks=[make_task("conv", 1.0), mul])
    rid = "" if unknown == "tiles" else "picked"
    ours = make_task("conv", None, rid=rid, source=unknown)
    head = make_build("b", tasks=[ours, replace(mul, ms=2.5, rid="other")])
    assert operator_differences(make_builds(base, head), make_measurement((0.1,) * 4)) == ()


def test_no_layer_is_told_where_the_sides_have_other_runtimes() -> None:
    base = make_build("a", tasks=[make_task("conv", 1.0)])
    head = replace(make_build("b"), runtime="library")
    assert operator_differences(make_builds(base, head), make_measurement((0.1,) * 4)) == ()


def test_the_same_code_timed_on_one_side_alone_is_no_difference() -> None:
    base = make_build("a", tasks=[make_task("conv", 1.0), make_task("mul", 2.0)])
    tasks = [make_task("conv", None), make_task("mul", 3.0, rid="other")]
    head = make_build("b", tasks=tasks)
    found = operator_differences(make_builds(base, head), make_measurement((0.1,) * 4))
    assert [(each.name, each.is_alone) for each in found] == [("mul", True)]


def test_after_a_clear_fail_the_other_cell_has_its_share_of_the_error() -> None:
    """Slow enough for the whole error, and not for half of it."""
    noise = (0.004, -0.004, 0.002, -0.002, 0.001, -0.001)
    alone, shared = (bounds(noise, analyses=3, cells=cells).low for cells in (1, 2))
    middle = math.log1p(0.03) - (alone + shared) / 2
    doubtful = make_measurement([middle + each for each in noise])
    other = Cell(model="models/other.onnx", target=TARGET)

    def decided(beside: float) -> list[str | None]:
        clear = make_measurement([beside + each for each in noise], cell=other)
        builds = (
            make_builds(make_build("a"), make_build("b")),
            make_builds(make_build("a"), make_build("b"), other),
        )
        run = MeasurementRun(device=DEVICE, builds=builds, cells=(doubtful, clear))
        return [each.decision for each in compare(run, GateConfig())]

    assert decided(0.2) == ["fail", "fail"]
    assert decided(0.0) == ["undecided", "pass"]


seconds = st.floats(0.1, 1e4)


def test_hopeless_is_more_than_four_times_what_can_be_paid_for() -> None:
    assert is_hopeless(25, 6)
    assert not is_hopeless(24, 6)
    assert not is_hopeless(None, 6)


def test_analyses_that_do_not_fit_the_budget_are_dropped_before_the_start() -> None:
    assert affordable_analyses(100.0, 10.0) == (4, 6, 9)
    assert affordable_analyses(90.0, 10.0) == (4, 6, 9)
    assert affordable_analyses(1.0, 10.0) == (4,)


@given(seconds, seconds)
def test_analyses_are_the_first_planned_ones_and_fit_but_for_the_very_first(
    budget: float, launch: float
) -> None:
    analyses = affordable_analyses(budget, launch)
    assert analyses == PLANNED[: len(analyses)]
    assert analyses
    assert all(count * launch <= budget for count in analyses[1:])


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=6))
def test_any_effects_that_a_file_may_hold_make_an_interval_of_numbers(effects: list[float]) -> None:
    pair = make_builds(make_build("a"), make_build("b"))
    (found,) = compare(make_run(make_measurement(effects), pair), GateConfig())
    change = present(found.change_percent)
    assert -100 <= change.low <= change.center <= change.high < math.inf
