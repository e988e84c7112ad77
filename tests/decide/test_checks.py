import msgspec
import pytest

from tests.support import measured_cells
from tunegate.artifacts.histogram import histogram
from tunegate.artifacts.measurements import CellMeasurement, Clocks, Metric
from tunegate.artifacts.verdicts import Finding, Verdict
from tunegate.config import GateConfig, ObjectiveConfig
from tunegate.decide.checks import check_metric, check_objective
from tunegate.decide.compare import compare
from tunegate.decide.gate import decide_verdict
from tunegate.review.gate_rules import GateRules, Policies
from tunegate.tune.outcomes import tally

SLOWER, SAME = (0.05, 0.051, 0.049, 0.05), (0.001, -0.001, 0.0, 0.001)
OBJECTIVE = ObjectiveConfig(ms=10.0, percentile=90.0)


def verdict(
    measurement: CellMeasurement,
    policies: Policies,
    gate: GateConfig | None = None,
    sizes: tuple[int, int] = (100, 100),
) -> Verdict:
    rules = GateRules(gate=gate or GateConfig(), policies=policies)
    builds = measured_cells.make_builds(
        msgspec.structs.replace(measured_cells.make_build("a"), size_bytes=sizes[0]),
        msgspec.structs.replace(measured_cells.make_build("b"), size_bytes=sizes[1]),
    )
    run = measured_cells.make_run(measurement, builds)
    return decide_verdict(
        compare(run, rules.gate), run, measured_cells.make_changes(), tally(None, ()), rules
    )


def found(measurement: CellMeasurement, policies: Policies) -> Finding:
    return verdict(measurement, policies).findings[0]


def with_times(effects: tuple[float, ...], head_ms: list[float]) -> CellMeasurement:
    measured = measured_cells.make_measurement(effects)
    times = histogram(head_ms)
    launches = tuple(msgspec.structs.replace(x, head_times=times) for x in measured.launches)
    return msgspec.structs.replace(measured, launches=launches)


@pytest.mark.parametrize(
    ("head_ms", "status", "said"),
    [
        ([5.0] * 40, "pass", ""),
        ([5.0] * 40 + [20.0] * 20, "fail", "p90 of 10 ms is not met: 80 of 240"),
        ([5.0] * 4, "inconclusive", "is not resolvable here: 0 of 16 inferences"),
    ],
)
def test_an_objective_is_judged_beside_the_change(
    head_ms: list[float], status: str, said: str
) -> None:
    finding = found(
        with_times(SAME, head_ms), Policies(objectives={measured_cells.MODEL: OBJECTIVE})
    )
    assert finding.status == status
    assert said in finding.reason
    assert "within the 3% margin" in finding.reason


def test_a_new_model_has_an_objective_too() -> None:
    slow = measured_cells.make_measurement(stopped="single", alone=histogram([20.0] * 50))
    judged = check_objective(slow, OBJECTIVE)
    assert judged is not None
    assert judged.status == "fail"


def test_without_times_or_objective_nothing_is_said() -> None:
    assert check_objective(measured_cells.make_measurement(SAME), OBJECTIVE) is None
    assert check_objective(with_times(SAME, [1.0]), None) is None
    assert check_objective(None, OBJECTIVE) is None


def test_a_larger_artifact_fails_where_it_has_a_margin() -> None:
    measured = measured_cells.make_measurement(SAME)
    strict = GateConfig(size_margin_percent=10.0)
    assert verdict(measured, Policies(), sizes=(100, 200)).status == "pass"
    judged = verdict(measured, Policies(), strict, sizes=(100, 111))
    assert judged.status == "fail"
    assert "artifact +11.0%" in judged.findings[0].reason
    assert verdict(measured, Policies(), strict, sizes=(100, 109)).status == "pass"


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
    judged = check_metric(measured_cells.make_measurement(metric=found), margin)
    assert judged is not None
    assert judged.status == status
    assert said in judged.reason
    assert check_metric(measured_cells.make_measurement(), margin) is None


def measured_with(**numbers: tuple[int, ...]) -> CellMeasurement:
    """Launches without a change of their latency, each with its number of each field."""
    measured = measured_cells.make_measurement(SAME)
    rows = [dict(zip(numbers, row, strict=True)) for row in zip(*numbers.values(), strict=True)]
    replaced = zip(measured.launches, rows, strict=True)
    launches = tuple(msgspec.structs.replace(launch, **row) for launch, row in replaced)
    return msgspec.structs.replace(measured, launches=launches)


def test_more_memory_fails_where_it_has_a_margin() -> None:
    measured = measured_with(base_peak_bytes=(100,) * 4, head_peak_bytes=(130, 111, 150, 112))
    judged = verdict(measured, Policies(), GateConfig(memory_margin_percent=10.0))
    assert "peak memory +11.0%" in judged.findings[0].reason
    assert verdict(measured, Policies(), GateConfig(memory_margin_percent=12.0)).status == "pass"


def test_more_memory_than_some_launches_of_the_base_took_is_undecided() -> None:
    measured = measured_with(base_peak_bytes=(100, 100, 115, 100), head_peak_bytes=(120,) * 4)
    judged = verdict(measured, Policies(), GateConfig(memory_margin_percent=10.0))
    assert judged.status == "inconclusive"
    assert "but the base itself took 0.0 MB" in judged.findings[0].reason


def test_more_workspace_fails_where_it_has_a_margin() -> None:
    after = (130, 120, 121, 140)
    measured = measured_with(base_workspace_bytes=(100,) * 4, head_workspace_bytes=after)
    judged = verdict(measured, Policies(), GateConfig(workspace_margin_percent=10.0))
    assert "workspace +20.0%" in judged.findings[0].reason
    assert verdict(measured, Policies(), GateConfig(workspace_margin_percent=25.0)).status == "pass"


def test_a_slowdown_that_comes_with_a_lower_clock_says_so() -> None:
    clocks = Clocks(
        base_mhz=1500, head_mhz=1425, dropped=0, is_mediated=True, throttled=("power cap",)
    )
    measured = measured_cells.make_measurement(SLOWER)
    launches = tuple(msgspec.structs.replace(x, clocks=clocks) for x in measured.launches)
    judged = found(msgspec.structs.replace(measured, launches=launches), Policies())
    assert judged.status == "fail"
    assert judged.reason.endswith(
        "clock-mediated: the GPU ran at 1500 MHz for the base and at 1425 MHz for the head, held "
        "back by: power cap; in cycles the change is -0.1%"
    )


def with_clocks(effects: tuple[float, ...], head_mhz: tuple[float, ...]) -> CellMeasurement:
    measured = measured_cells.make_measurement(effects)
    launches = tuple(
        msgspec.structs.replace(
            launch, clocks=Clocks(base_mhz=1500, head_mhz=mhz, dropped=0, is_mediated=False)
        )
        for launch, mhz in zip(measured.launches, head_mhz, strict=True)
    )
    return msgspec.structs.replace(measured, launches=launches)


BARELY = (0.0352, 0.0356, 0.0354, 0.0353)


def test_what_is_slower_in_seconds_alone_does_not_fail_where_the_clock_moved_by_itself() -> None:
    judged = found(with_clocks(BARELY, (1480, 1502, 1480, 1500)), Policies())
    assert judged.status == "inconclusive"
    assert (
        "in seconds, not in clock cycles; the clock moved by itself, not with the head: the "
        in (judged.reason)
    )
    assert judged.reason.endswith("at 1490 MHz for the head; in cycles the change is +2.9%")


def test_a_clock_that_is_lower_with_the_head_in_every_launch_is_the_heads_and_fails() -> None:
    judged = found(with_clocks(BARELY, (1480, 1490, 1485, 1482)), Policies())
    assert judged.status == "fail"
    assert "clock-mediated: the GPU ran at 1500 MHz for the base and at 1484 MHz" in judged.reason


def test_without_the_clock_of_every_launch_seconds_decide() -> None:
    measured = with_clocks(BARELY, (1480, 1502, 1480, 1500))
    first, *others = measured.launches
    untold = msgspec.structs.replace(first, clocks=None)
    judged = found(msgspec.structs.replace(measured, launches=(untold, *others)), Policies())
    assert judged.status == "fail"


def test_cycles_that_are_more_too_fail_under_a_clock_that_moves() -> None:
    judged = found(with_clocks(SLOWER, (1480, 1502, 1480, 1500)), Policies())
    assert judged.status == "fail"
    assert "clock" not in judged.reason


def test_what_passes_by_the_absolute_floor_names_the_floor() -> None:
    judged = verdict(
        measured_cells.make_measurement(SLOWER), Policies(), GateConfig(absolute_floor_us=1e6)
    )
    assert judged.status == "pass"
    assert judged.findings[0].reason.endswith(
        "over the 3% margin, but under the absolute floor of 1000000 µs"
    )
    assert "within" not in judged.findings[0].reason
