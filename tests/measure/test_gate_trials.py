from __future__ import annotations

import math
import random
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from tests.support.measured_cells import make_context
from tests.support.simulated.hand_clock import HandClock
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.measurements import Histogram, Launch
from tunegate.config import GateConfig
from tunegate.measure.selftest import INJECTED_PERCENT, Qualification, qualify
from tunegate.ports import ProbeThresholds
from tunegate.system.progress.shown_progress import PlainLog


class MadeUpMachine:
    """Launch effects of a known spread; a `deaf` one does not show what is put in."""

    within_spread, start_seconds, pair_seconds = 0.01, 1.0, 0.1

    def __init__(self, spread: float, clock: HandClock, *, deaf: bool = False) -> None:
        self.spread, self.clock, self.deaf = spread, clock, deaf
        self.slowdown = 0.0
        self.rng = random.Random(2)

    def pair(self, base: Path, head: Path, *, slowdown_percent: float = 0.0) -> MadeUpMachine:
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
