import datetime
from collections.abc import Generator, Mapping
from pathlib import Path

import msgspec
import pytest

from tests.support.measured_cells import CELL, make_build, make_builds, make_context, make_launches
from tests.support.present import present
from tests.support.waivers import TODAY, make_waiver
from tunegate.artifacts.builds import CandidateTime, CellBuilds, RuntimeChoice
from tunegate.artifacts.histogram import Histogram, histogram
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.measurements import CellMeasurement, Launch, LayersLaunch
from tunegate.config import GateConfig, ObjectiveConfig
from tunegate.errors import MeasurementError
from tunegate.measure.measure_cells import Reference, measure
from tunegate.ports import ProbeThresholds, Turns
from tunegate.review.gate_rules import NO_POLICIES, GateRules, Policies
from tunegate.system.progress.shown_progress import PlainLog


class ScriptedBench:
    """Launches with these effects; None breaks one."""

    within_spread = 0.01
    start_seconds = 2.0
    pair_seconds = 0.5

    def __init__(self, effects: list[float | None]) -> None:
        self.effects = effects
        self.asked: list[int] = []
        self.probed = 0

    def launch(self, pairs: int) -> Launch:
        self.asked.append(pairs)
        effect = self.effects.pop(0)
        if effect is None:
            message = "the measuring process was killed by SIGKILL"
            raise MeasurementError(message)
        return make_launches([effect])[0]

    def probes(self, count: int, far: ProbeThresholds) -> Generator[Launch]:
        self.probed = count
        yield from make_launches([0.0] * count)


class ScriptedBenchmarker:
    def __init__(self, bench: ScriptedBench, layers_ms: tuple[float, float] | None = None) -> None:
        """Launches of layers take a second, and ten from the fifth on."""
        self.bench = bench
        self.pairs = 0
        self.layers_ms = layers_ms

    def pair(self, base: Path, head: Path, **_: object) -> ScriptedBench:
        if base == head:  # the control
            return ScriptedBench([0.0] * 20)
        self.pairs += 1
        return self.bench

    def single_ms(self, artifact: Path) -> float:
        return 5.0

    def times(self, artifact: Path, inferences: int) -> Histogram:
        return histogram([5.0] * inferences)

    def operators_ms(self, artifact: Path) -> Mapping[str, float]:
        return {"conv": 1.0 if artifact.name == "a" else 1.1}

    def layers(self, base: Path, head: Path, *, number: int, turns: Turns) -> LayersLaunch:
        if self.layers_ms is None:
            message = "no answer in 120 s"
            raise MeasurementError(message)
        base_ms, head_ms = self.layers_ms
        slower = {"conv": head_ms - base_ms + number / 1000}
        seconds = 1.0 if number < 4 else 10.0
        head_ms += (-1) ** number / 100 if head_ms else 0.0
        return LayersLaunch(
            whole_ms=10.0, base_ms=base_ms, head_ms=head_ms, seconds=seconds, largest=slower
        )

    def reference_ms(self, model: ShapedModel, *, threads: int) -> float:
        return 2.5


def measured(
    effects: list[float | None],
    builds: CellBuilds,
    tmp_path: Path,
    policies: Policies = NO_POLICIES,
    *,
    layers_margin: float | None = None,
    layers_ms: tuple[float, float] | None = None,
) -> tuple[CellMeasurement, ScriptedBenchmarker]:
    benchmarker = ScriptedBenchmarker(ScriptedBench(effects), layers_ms)
    with (tmp_path / "log").open("w") as log:
        run = measure(
            [builds],
            benchmarker=benchmarker,
            rules=GateRules(
                gate=GateConfig(seconds=100.0, layers_margin_percent=layers_margin),
                policies=policies,
            ),
            context=make_context(tmp_path, PlainLog(log, update_seconds=0.0)),
            references={
                CELL.model: Reference(
                    "plain", "Plain Runtime", ShapedModel(tmp_path / "m.onnx", {}), 1
                )
            },
        )
    return run.cells[0], benchmarker


PAIR = make_builds(make_build("a"), make_build("b"))


def test_what_the_margin_may_hide_is_taken_apart_and_a_null_change_is_not(tmp_path: Path) -> None:
    slower, _ = measured([0.1, 0.1, 0.1, 0.1], PAIR, tmp_path)
    assert slower.task_ms == {"base": {"conv": 1.0}, "head": {"conv": 1.1}}
    assert "timing the layers" in (tmp_path / "log").read_text()
    same, _ = measured([0.001, -0.001, 0.0, 0.0005], PAIR, tmp_path)
    assert same.task_ms == {}


SAME: list[float | None] = [0.001, -0.001, 0.0, 0.0005]


@pytest.mark.parametrize(
    ("layers_ms", "launches"), [((4.0, 5.0), 4), ((4.0, 4.1), 19), ((0.0, 0.0), 1)]
)
def test_layers_that_differ_are_launched_until_their_margin_is_decided(
    tmp_path: Path, layers_ms: tuple[float, float], launches: int
) -> None:
    cell, _ = measured([*SAME], PAIR, tmp_path, layers_margin=1.0, layers_ms=layers_ms)
    assert len(present(cell.layers).launches) == launches


def test_layers_that_cannot_be_timed_leave_the_measurement_of_the_model(tmp_path: Path) -> None:
    cell, _ = measured([*SAME], PAIR, tmp_path, layers_margin=1.0)
    assert present(cell.layers).problem == "no answer in 120 s"
    assert len(cell.launches) == 4


def test_a_fail_that_a_waiver_may_cover_is_measured_on(tmp_path: Path) -> None:
    effects: list[float | None] = [0.05, 0.051, 0.049, 0.05]
    for expires, probed in ((TODAY, 12), (TODAY - datetime.timedelta(days=1), 0)):
        policies = Policies(waivers=(make_waiver(expires=expires),), today=TODAY)
        cell, benchmarker = measured([*effects], PAIR, tmp_path, policies)
        expected = (4, probed, probed)
        assert (len(cell.launches), len(cell.probes), benchmarker.bench.probed) == expected


@pytest.mark.parametrize(
    ("is_remembered", "runtime", "reference_ms"),
    [
        (False, "tvm", 2.0),
        (True, "tvm", 2.5),  # measured now: that of another day says nothing beside it
        (False, "plain", None),  # its own
    ],
)
def test_the_reference_is_what_the_choice_of_a_runtime_measured(
    tmp_path: Path, is_remembered: bool, runtime: str, reference_ms: float | None
) -> None:
    times = (CandidateTime(candidate="plain", title="Plain Runtime", ms=2.0),)
    choice = RuntimeChoice(times=times, is_remembered=is_remembered)
    head = msgspec.structs.replace(make_build("b"), choice=choice, runtime=runtime)
    cell, _ = measured([0.1, 0.1, 0.1, 0.1], make_builds(make_build("a"), head), tmp_path)
    assert cell.reference_ms == reference_ms


def test_an_unclear_one_goes_on_with_replanned_pairs(tmp_path: Path) -> None:
    cell, benchmarker = measured(
        [0.02, 0.0, 0.015, 0.01, 0.01, 0.01, 0.0, 0.0, 0.0], PAIR, tmp_path
    )
    assert len(cell.launches) > 4
    assert benchmarker.bench.asked[:4] == [12] * 4
    assert benchmarker.bench.asked[4] != 12


def test_a_launch_that_breaks_twice_makes_the_cell_invalid(tmp_path: Path) -> None:
    cell, _ = measured([0.1, None, None], PAIR, tmp_path)
    assert cell.stopped == "invalid"
    assert "SIGKILL" in cell.notes[0]


def test_a_launch_that_gives_no_number_counts_as_broken(tmp_path: Path) -> None:
    cell, _ = measured([0.1, float("nan"), 0.1, 0.1, 0.1], PAIR, tmp_path)
    assert (len(cell.launches), cell.stopped) == (4, "decided")
    cell, _ = measured([0.1, float("inf"), float("nan")], PAIR, tmp_path)
    assert (cell.stopped, "no number" in cell.notes[0]) == ("invalid", True)


def test_equal_keys_are_not_measured(tmp_path: Path) -> None:
    cell, benchmarker = measured([], make_builds(make_build("a"), make_build("a")), tmp_path)
    assert (cell.stopped, benchmarker.pairs) == ("identical", 0)


def test_a_model_without_a_base_is_timed_alone(tmp_path: Path) -> None:
    cell, _ = measured([], make_builds(None, make_build()), tmp_path)
    assert (cell.stopped, cell.head_ms) == ("single", 5.0)


def test_a_model_without_a_base_is_timed_as_often_as_its_objective_asks(tmp_path: Path) -> None:
    policies = Policies(objectives={CELL.model: ObjectiveConfig(ms=10.0, percentile=99.0)})
    cell, _ = measured([], make_builds(None, make_build()), tmp_path, policies)
    assert present(cell.alone).total == 299


def test_a_failed_head_is_an_error_and_not_run(tmp_path: Path) -> None:
    cell, benchmarker = measured([], make_builds(make_build(), make_build(error="x")), tmp_path)
    assert (cell.stopped, benchmarker.pairs) == ("error", 0)
