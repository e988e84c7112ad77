import re
from typing import Literal

import pytest
from msgspec.structs import replace

from tests.report.budgeted import LIMITS, make_error
from tests.support.measured_cells import (
    MODEL,
    make_build,
    make_builds,
    make_changes,
    make_launches,
    make_measurement,
    make_run,
    make_task,
)
from tests.support.present import present
from tunegate.artifacts.builds import CellBuilds
from tunegate.artifacts.changes import ChangeSet, Effect, PolicyChange
from tunegate.artifacts.histogram import histogram
from tunegate.artifacts.measurements import CellMeasurement, Clocks, Metric
from tunegate.artifacts.verdicts import Finding, Verdict
from tunegate.config import GateConfig, ObjectiveConfig
from tunegate.decide.checks import check_metric, check_objective
from tunegate.decide.compare import compare
from tunegate.decide.gate import decide_verdict
from tunegate.review.gate_rules import NO_POLICIES, GateRules, Policies
from tunegate.tune.outcomes import tally

PAIR = make_builds(make_build("a"), make_build("b"))
SLOWER = (0.10, 0.101, 0.099, 0.1)
SAME = (0.001, -0.001, 0.0, 0.001)
NOISY = (0.2, -0.2, 0.1, -0.1)
USUAL = GateRules(gate=GateConfig())


def verdict(
    measurement: CellMeasurement,
    policies: Policies = NO_POLICIES,
    gate: GateConfig | None = None,
    builds: CellBuilds = PAIR,
    changes: ChangeSet | None = None,
) -> Verdict:
    rules = GateRules(gate=gate or GateConfig(), policies=policies)
    run = make_run(measurement, builds)
    return decide_verdict(
        compare(run, rules.gate), run, changes or make_changes(), tally(None, ()), rules
    )


def found(measurement: CellMeasurement, policies: Policies = NO_POLICIES) -> Finding:
    return verdict(measurement, policies).findings[0]


@pytest.mark.parametrize(
    ("effects", "status", "exit_code"),
    [(SLOWER, "fail", 1), (SAME, "pass", 0), (NOISY, "inconclusive", 3)],
)
def test_launches_decide(effects: tuple[float, ...], status: str, exit_code: int) -> None:
    judged = verdict(make_measurement(effects))
    assert (judged.status, judged.exit_code) == (status, exit_code)
    assert judged.findings[0].launches == 4


@pytest.mark.parametrize(("effects", "remarked"), [(SAME, True), (SLOWER, False)])
def test_other_outputs_are_only_told(effects: tuple[float, ...], *, remarked: bool) -> None:
    measured = make_measurement(effects)
    first, *others = measured.launches
    differing = "outputs differ on equal inputs, which is not judged: y by up to 80% of …"
    launches = (replace(first, differing=differing), *others)
    judged = verdict(replace(measured, launches=launches))
    (finding,) = judged.findings
    assert judged.status == verdict(measured).status
    assert finding.reason.endswith(differing)
    usual = verdict(measured).findings[0].remarks
    told = [usual, differing] if usual or remarked else []
    assert finding.remarks == "; ".join(filter(None, told))


def test_a_verdict_has_the_seed_of_its_measurements() -> None:
    run = replace(make_run(make_measurement(SAME), PAIR), seed="7")
    comparisons = compare(run, USUAL.gate)
    assert decide_verdict(comparisons, run, make_changes(), tally(None, ()), USUAL).seed == "7"


def test_an_undecided_gate_may_be_told_to_warn_only() -> None:
    judged = verdict(make_measurement(NOISY), gate=GateConfig(inconclusive="warn"))
    assert (judged.status, judged.exit_code) == ("inconclusive", 0)


def test_an_identical_build_passes_unmeasured_and_says_so() -> None:
    judged = verdict(
        make_measurement(stopped="identical"), builds=make_builds(make_build(), make_build())
    )
    assert judged.status == "pass"
    assert judged.findings[0].reason == "identical build, not measured"


def test_a_new_model_is_reported_with_its_latency() -> None:
    measurement = make_measurement(stopped="single", head_ms=3.0)
    judged = verdict(
        measurement, builds=make_builds(None, make_build()), changes=make_changes(is_new=True)
    )
    assert (judged.status, judged.exit_code) == ("new", 0)
    assert judged.findings[0].head_ms == 3.0


def test_a_base_that_does_not_build_is_no_baseline() -> None:
    builds = make_builds(make_build(error="m.onnx: operator Odd"), make_build())
    judged = verdict(make_measurement(stopped="single", head_ms=3.0), builds=builds)
    assert (judged.status, judged.exit_code) == ("no-baseline", 5)
    said = "the base of this model cannot be measured: m.onnx: operator Odd"
    assert judged.findings[0].reason == said


def test_a_wrong_head_is_an_error_whatever_was_measured() -> None:
    builds = make_builds(make_build(), make_build(error="computes other numbers"))
    judged = verdict(make_measurement(stopped="error"), builds=builds)
    assert (judged.status, judged.exit_code) == ("error", 2)


def test_a_broken_measurement_is_an_unfit_environment() -> None:
    judged = verdict(make_measurement(stopped="invalid", notes=("the worker died",)))
    assert (judged.status, judged.exit_code) == ("invalid-env", 4)
    assert judged.findings[0].reason == "the worker died"


def test_a_cell_without_a_result_is_an_error_never_a_pass() -> None:
    judged = verdict(make_measurement(SAME), changes=make_changes(targets=("cpu", "gpu")))
    assert (judged.status, judged.exit_code) == ("error", 2)
    assert [finding.status for finding in judged.findings] == ["pass", "error"]


def test_no_run_at_all_is_an_error_when_models_changed() -> None:
    assert decide_verdict((), None, make_changes(), tally(None, ()), USUAL).exit_code == 2


def test_nothing_changed_is_a_pass() -> None:
    nothing = replace(make_changes(), models=())
    judged = decide_verdict((), None, nothing, tally(None, ()), USUAL)
    assert (judged.status, judged.exit_code, judged.findings) == ("pass", 0, ())


def test_the_task_that_holds_the_slowdown_comes_first() -> None:
    base = make_build("a", tasks=[make_task("conv", 1.0), make_task("pool", 0.2)])
    head = make_build("b", tasks=[make_task("wide conv", 4.0), make_task("pool", 0.2)])
    judged = verdict(make_measurement(SLOWER), builds=make_builds(base, head))
    differences = judged.findings[0].differences
    assert [d.name for d in differences] == ["wide conv", "conv"]
    assert differences[0].difference_ms == 4.0


def with_medians(base_ms: float, head_ms: float) -> CellMeasurement:
    """Launches that are slower, whose medians are these."""
    measured = make_measurement(SLOWER)
    launches = tuple(replace(x, base_ms=base_ms, head_ms=head_ms) for x in measured.launches)
    return replace(measured, launches=launches)


def test_a_tiny_absolute_change_does_not_fail() -> None:
    tiny = with_medians(0.002, 0.0022)
    probes = tuple(replace(x, base_ms=0.002, head_ms=0.0022) for x in tiny.probes)
    assert verdict(replace(tiny, probes=probes)).status == "pass"


def test_a_head_with_half_of_its_blocks_slow_may_have_the_base_s_median_and_fails() -> None:
    assert verdict(with_medians(0.05, 0.05)).status == "fail"


def test_a_few_starts_that_add_more_than_the_floor_are_no_tiny_change() -> None:
    slow = replace(make_launches((3.0,))[0], base_ms=0.002, head_ms=0.04)
    measured = replace(with_medians(0.002, 0.0022), probes=(slow,) * 15)
    assert verdict(measured).status == "inconclusive"


NAN = float("nan")
SPOILT: dict[str, dict[str, object]] = {
    "one effect is no number": {"launches": make_launches((*SAME[:3], NAN))},
    "no effect is a number": {"launches": make_launches((NAN,) * 4)},
    "an infinite effect": {"launches": make_launches((*SAME[:3], float("-inf")))},
    "no launches": {"launches": ()},
    "one launch": {"launches": make_launches(SAME[:1])},
    "no looks": {"analyses": ()},
    "it was never decided": {"launches": make_launches(NOISY), "stopped": "budget"},
    "it was given up": {"launches": make_launches(NOISY), "stopped": "hopeless"},
    "the machine was too noisy": {"stopped": "disturbed"},
    "a worker crashed": {"stopped": "invalid"},
    "a build failed": {"stopped": "error"},
    "timed alone, though there is a base": {"stopped": "single", "launches": ()},
    "not measured, though the builds differ": {"stopped": "identical", "launches": ()},
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SPOILT)
def test_whatever_is_wrong_with_a_pass_it_is_one_no_more(name: str) -> None:
    good = make_measurement(SAME)
    assert verdict(good).exit_code == 0
    assert verdict(replace(good, **SPOILT[name])).exit_code != 0


LOOSENED = PolicyChange(
    key="gate.margin-percent", old="3", new="60", effect="loosened", counts="once merged"
)


@pytest.mark.parametrize(
    ("effect", "mode", "status"),
    [
        ("loosened", "report", "pass"),
        ("loosened", "fail", "fail"),
        ("changed", "fail", "fail"),
        ("tightened", "fail", "pass"),
    ],
)
def test_loosened_rules_fail_where_the_policy_says_so(
    effect: Effect, mode: Literal["report", "fail"], status: str
) -> None:
    told = replace(LOOSENED, effect=effect)
    changes = replace(make_changes(), models=(), policy_changes=(told,))
    rules = GateRules(gate=GateConfig(policy_changes=mode))
    found = decide_verdict((), None, changes, tally(None, ()), rules)
    assert (found.status, found.exit_code) == (status, int(status == "fail"))
    assert found.policy_changes == (told,)
    assert found.policy_fails is (status == "fail")


def test_a_model_that_is_no_file_any_more_is_an_error_with_the_reason() -> None:
    (change,) = make_changes().models
    gone = replace(change, kind="unreadable", head=None, reason="m is a submodule")
    changes = replace(make_changes(), models=(gone,))
    found = decide_verdict((), None, changes, tally(None, ()), USUAL)
    assert (found.exit_code, found.findings[0].reason) == (2, "m is a submodule")


def test_a_pass_whose_error_got_larger_for_nothing_stays_one_and_says_so() -> None:
    base, head = (
        replace(make_build(key), limits=LIMITS, error_estimate=(make_error(error, error, error),))
        for key, error in (("a", 0.5), ("b", 0.9))
    )
    (finding,) = verdict(make_measurement(SAME), builds=make_builds(base, head)).findings
    assert finding.status == "pass"
    assert present(finding.accuracy).moved == ("max-error",)


# What is checked beside the latency.


A_BIT_SLOWER = (0.05, 0.051, 0.049, 0.05)
OBJECTIVE = ObjectiveConfig(ms=10.0, percentile=90.0)


def with_times(effects: tuple[float, ...], head_ms: list[float]) -> CellMeasurement:
    measured = make_measurement(effects)
    times = histogram(head_ms)
    launches = tuple(replace(x, head_times=times) for x in measured.launches)
    return replace(measured, launches=launches)


@pytest.mark.parametrize(
    ("head_ms", "status", "said"),
    [
        ([5.0] * 40, "pass", ""),
        ([5.0] * 40 + [20.0] * 20, "fail", "p90 of 10 ms is not met: 80 of 240"),
        ([5.0] * 4, "inconclusive", "is not resolvable here: 0 of 16 inferences"),
    ],
)
def test_objectives_are_judged_beside_changes(head_ms: list[float], status: str, said: str) -> None:
    finding = found(with_times(SAME, head_ms), Policies(objectives={MODEL: OBJECTIVE}))
    assert finding.status == status
    assert said in finding.reason
    assert "within the 3% margin" in finding.reason


def test_a_new_model_has_an_objective_too() -> None:
    slow = make_measurement(stopped="single", alone=histogram([20.0] * 50))
    assert present(check_objective(slow, OBJECTIVE)).status == "fail"


def test_without_times_or_objective_nothing_is_said() -> None:
    assert check_objective(make_measurement(SAME), OBJECTIVE) is None
    assert check_objective(with_times(SAME, [1.0]), None) is None
    assert check_objective(None, OBJECTIVE) is None


def test_a_larger_artifact_fails_where_it_has_a_margin() -> None:
    def judged(head_bytes: int, gate: GateConfig) -> Finding:
        base, head = replace(make_build("a"), size_bytes=100), make_build("b")
        builds = make_builds(base, replace(head, size_bytes=head_bytes))
        return verdict(make_measurement(SAME), gate=gate, builds=builds).findings[0]

    strict = GateConfig(size_margin_percent=10.0)
    assert judged(200, GateConfig()).status == "pass"
    assert judged(111, strict).status == "fail"
    assert "artifact +11.0%" in judged(111, strict).reason
    assert judged(109, strict).status == "pass"


@pytest.mark.parametrize(
    ("found", "margin", "status", "said"),
    [
        (Metric(base=0.71, head=0.70), 0.0, "fail", "0.71 to 0.7 (-0.01), over its margin of 0"),
        (Metric(base=0.71, head=0.70), 0.02, "pass", "0.71 to 0.7 (-0.01)"),
        (Metric(base=0.71, head=0.75), 0.0, "pass", "(+0.04)"),
        (Metric(head=0.75), 0.0, "pass", "metric 0.75"),
        (Metric(problem="`x` exited with 1: boom"), 9.0, "error", "boom"),
        (Metric(base=0.71), 9.0, "error", "no head"),
    ],
)
def test_the_users_own_measure_may_not_get_worse(
    found: Metric, margin: float, status: str, said: str
) -> None:
    judged = present(check_metric(make_measurement(metric=found), margin))
    assert judged.status == status
    assert said in judged.reason
    assert check_metric(make_measurement(), margin) is None


def measured_with(**numbers: tuple[int, ...]) -> CellMeasurement:
    """Launches without a change of their latency, each with its number of each field."""
    measured = make_measurement(SAME)
    rows = [dict(zip(numbers, row, strict=True)) for row in zip(*numbers.values(), strict=True)]
    replaced = zip(measured.launches, rows, strict=True)
    launches = tuple(replace(launch, **row) for launch, row in replaced)
    return replace(measured, launches=launches)


def test_more_memory_fails_where_it_has_a_margin() -> None:
    measured = measured_with(base_peak_bytes=(100,) * 4, head_peak_bytes=(130, 111, 150, 112))
    judged = verdict(measured, NO_POLICIES, GateConfig(memory_margin_percent=10.0))
    assert "peak memory +11.0%" in judged.findings[0].reason
    assert verdict(measured, NO_POLICIES, GateConfig(memory_margin_percent=12.0)).status == "pass"


def test_more_memory_than_some_launches_of_the_base_took_is_undecided() -> None:
    measured = measured_with(base_peak_bytes=(100, 100, 115, 100), head_peak_bytes=(120,) * 4)
    judged = verdict(measured, NO_POLICIES, GateConfig(memory_margin_percent=10.0))
    assert judged.status == "inconclusive"
    assert "but the base itself took 0.0 MB" in judged.findings[0].reason


def test_more_workspace_fails_where_it_has_a_margin() -> None:
    after = (130, 120, 121, 140)
    measured = measured_with(base_workspace_bytes=(100,) * 4, head_workspace_bytes=after)
    judged = verdict(measured, NO_POLICIES, GateConfig(workspace_margin_percent=10.0))
    assert "workspace +20.0%" in judged.findings[0].reason
    assert (
        verdict(measured, NO_POLICIES, GateConfig(workspace_margin_percent=25.0)).status == "pass"
    )


def test_a_slowdown_that_comes_with_a_lower_clock_says_so() -> None:
    clocks = Clocks(
        base_mhz=1500, head_mhz=1425, dropped=0, is_mediated=True, throttled=("power cap",)
    )
    measured = make_measurement(A_BIT_SLOWER)
    launches = tuple(replace(x, clocks=clocks) for x in measured.launches)
    judged = found(replace(measured, launches=launches), NO_POLICIES)
    assert judged.status == "fail"
    assert judged.reason.endswith(
        "clock-mediated: the GPU ran at 1500 MHz for the base and at 1425 MHz for the head, held "
        "back by: power cap; in cycles the change is -0.1%"
    )


def with_clocks(effects: tuple[float, ...], head_mhz: tuple[float, ...]) -> CellMeasurement:
    measured = make_measurement(effects)
    launches = tuple(
        replace(launch, clocks=Clocks(base_mhz=1500, head_mhz=mhz, dropped=0, is_mediated=False))
        for launch, mhz in zip(measured.launches, head_mhz, strict=True)
    )
    return replace(measured, launches=launches)


BARELY = (0.0352, 0.0356, 0.0354, 0.0353)


MOVED_BY_ITSELF = (1480, 1502, 1480, 1500)


@pytest.mark.parametrize(
    ("effects", "head_mhz", "status", "said"),
    [
        (
            BARELY,
            MOVED_BY_ITSELF,
            "inconclusive",
            r"in seconds, not in clock cycles; the clock moved by itself, .* 1490 MHz .* \+2\.9%$",
        ),
        (
            BARELY,
            (1480, 1490, 1485, 1482),
            "fail",
            "clock-mediated: the GPU ran at 1500 MHz for the base and at 1484 MHz",
        ),
        (A_BIT_SLOWER, MOVED_BY_ITSELF, "fail", "^((?!clock).)*$"),
    ],
    ids=["slower in seconds alone", "a clock of the head's in every launch", "more cycles too"],
)
def test_what_is_slower_in_seconds_fails_unless_the_clock_moved_by_itself(
    effects: tuple[float, ...], head_mhz: tuple[float, ...], status: str, said: str
) -> None:
    judged = found(with_clocks(effects, head_mhz))
    assert judged.status == status
    assert re.search(said, judged.reason)


def test_without_the_clock_of_every_launch_seconds_decide() -> None:
    measured = with_clocks(BARELY, MOVED_BY_ITSELF)
    first, *others = measured.launches
    untold = replace(first, clocks=None)
    judged = found(replace(measured, launches=(untold, *others)), NO_POLICIES)
    assert judged.status == "fail"


def test_what_passes_by_the_absolute_floor_names_the_floor() -> None:
    judged = verdict(make_measurement(A_BIT_SLOWER), NO_POLICIES, GateConfig(absolute_floor_us=1e6))
    assert judged.status == "pass"
    assert judged.findings[0].reason.endswith(
        "over the 3% margin, but under the absolute floor of 1000000 µs"
    )
    assert "within" not in judged.findings[0].reason
