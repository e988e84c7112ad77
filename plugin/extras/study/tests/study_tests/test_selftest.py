"""The margins that the gate can decide on this machine, and its mistakes."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest
from tests.support.measured_cells import make_context
from tests.support.replayed_gates import gates
from tests.support.simulated.hand_clock import HandClock
from tests.support.workspace import FIRST_ANALYSIS, NOT_COMPILED, Workspace

from tunegate.artifacts.histogram import Histogram
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.measurements import Launch, LayersLaunch
from tunegate.cli.main import main
from tunegate.config import GateConfig
from tunegate.measure import pair_bench
from tunegate.ports import Bench, ProbeThresholds, Turns
from tunegate.system.progress.shown_progress import PlainLog
from tunegate_study import selftest
from tunegate_study.selftest import (
    INJECTED_PERCENT,
    Injected,
    Qualification,
    TrialOutcome,
    advice,
    qualify,
    smallest_margin_percent,
)


class MadeUpMachine:
    """Launch effects of a known spread; a `deaf` one does not show what is put in."""

    within_spread, start_seconds, pair_seconds = 0.01, 1.0, 0.1

    def __init__(self, spread: float, clock: HandClock, *, deaf: bool = False) -> None:
        self.spread, self.clock, self.deaf = spread, clock, deaf
        self.slowdown = 0.0
        self.rng = random.Random(2)

    def pair(self, base: Path, head: Path, *, slowdown_percent: float = 0.0, **_: object) -> Bench:
        made = MadeUpMachine(self.spread, self.clock, deaf=self.deaf)
        made.slowdown = 0.0 if self.deaf else slowdown_percent / 100
        made.rng = self.rng
        return made

    def launch(self, pairs: int) -> Launch:
        self.clock.now += 2.0
        effect = math.log1p(self.slowdown) + self.rng.gauss(0.0, self.spread)
        return Launch(
            effect=effect,
            base_ms=1.0,
            head_ms=math.exp(effect),
            pairs=pairs,
            seconds=2.0,
            noise=1e-4,
        )

    def probes(self, count: int, far: ProbeThresholds) -> Generator[Launch]:
        for _ in range(count):
            yield self.launch(3)

    def single_ms(self, artifact: Path) -> float:
        raise AssertionError

    def times(self, artifact: Path, inferences: int) -> Histogram:
        raise AssertionError

    def operators_ms(self, artifact: Path) -> Mapping[str, float]:
        raise AssertionError

    def layers(self, base: Path, head: Path, *, number: int, turns: Turns) -> LayersLaunch:
        raise AssertionError

    def reference_ms(self, model: ShapedModel, *, threads: int) -> float:
        raise AssertionError


def qualified(tmp_path: Path, spread: float, *, deaf: bool = False) -> Qualification:
    clock = HandClock()
    with (tmp_path / "log").open("w") as log:
        return qualify(
            tmp_path,
            benchmarker=MadeUpMachine(spread, clock, deaf=deaf),
            gate=GateConfig(),
            context=make_context(tmp_path, PlainLog(log), clock),
            seconds=600.0,
        )


def test_a_steady_machine_decides_a_small_margin_and_is_never_wrong(tmp_path: Path) -> None:
    found = qualified(tmp_path, 0.002)
    assert found.margin_percent is not None
    assert found.margin_percent <= 1.0
    assert found.wrong == ()
    assert [each.percent for each in found.injected] == list(INJECTED_PERCENT)
    assert [each.outcome for each in found.injected][-3:] == ["fail"] * 3
    assert found.injected[0].outcome == "pass"
    assert found.injected[-1].center == pytest.approx(10.0, abs=1.0)


def test_a_noisy_machine_needs_a_larger_margin(tmp_path: Path) -> None:
    margin = qualified(tmp_path, 0.05).margin_percent
    assert margin is not None
    assert margin >= 3.0


def test_a_machine_that_can_decide_nothing_has_no_margin(tmp_path: Path) -> None:
    assert qualified(tmp_path, 0.9).margin_percent is None


def test_a_machine_that_does_not_show_a_slowdown_is_caught(tmp_path: Path) -> None:
    found = qualified(tmp_path, 0.002, deaf=True)
    assert {each.percent for each in found.wrong} >= {5.0, 10.0}


def made(margin: float | None, *, wrong: bool = False) -> Qualification:
    outcome: TrialOutcome = "pass" if wrong else "fail"
    injected = Injected(
        percent=30.0, outcome=outcome, low=29.0, center=30.0, high=31.0, launches=4, seconds=8.0
    )
    return Qualification(
        aa_launches=40,
        spread_percent=0.5,
        resolves_percent=0.9,
        margin_percent=margin,
        gate_seconds=240.0,
        launch_seconds=2.0,
        injected=(injected,),
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (made(1.0), "gate.margin-percent could be 1 instead of 3"),
        (made(3.0), "decides its margin of 3% in 240 s"),
        (made(5.0), "set gate.margin-percent: 5, raise gate.seconds, or use a quieter one"),
        (made(None), "cannot decide even 20%"),
        (made(3.0, wrong=True), "do not gate on this machine"),
    ],
)
def test_the_advice_says_what_to_do(found: Qualification, said: str) -> None:
    assert said in advice(found, 3.0)


def launches(spread: float, count: int = 4000, seed: int = 3) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(0.0, spread) for _ in range(count)]


@pytest.mark.parametrize("spread", [0.004, 0.01, 0.03])
def test_at_this_margin_nearly_every_unchanged_model_passes(spread: float) -> None:
    effects = launches(spread)
    margin = smallest_margin_percent(effects, launch_seconds=2.0, budget_seconds=240.0)
    found = gates(effects, [0.001] * len(effects), 0.0, margin)
    assert sum(each.outcome == "pass" for each in found) >= 0.9 * len(found)


# The self-test on this very machine, cut short.


@pytest.mark.e2e
def test_it_measures_this_machine_and_says_what_it_can_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real processes, but few of them, and each is soon warm."""
    monkeypatch.setattr(pair_bench, "WARM_UP_SECONDS", 0.05)
    monkeypatch.setattr(selftest, "INJECTED_PERCENT", (0.0, 10.0))
    monkeypatch.setattr(selftest, "_FEWEST", 4)
    workspace = Workspace(tmp_path / "w", NOT_COMPILED + FIRST_ANALYSIS)
    monkeypatch.chdir(workspace.root)
    line = ["selftest", "--model", "models/m.onnx", "--minutes", "0.05", "--json"]
    assert main(line) in {0, 4}
    found = json.loads(capsys.readouterr().out)
    assert found["aa_launches"] >= 1
    assert [each["percent"] for each in found["injected"]] == [0.0, 10.0]


def test_it_begins_with_a_configuration_that_can_be_read(tmp_path: Path) -> None:
    assert main(["selftest", "--config", str(tmp_path / "nope.yaml")]) == 2
