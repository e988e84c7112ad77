from __future__ import annotations

import math
import random
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from tests.support.measured_cells import make_build, make_context
from tests.support.simulated.hand_clock import HandClock
from tests.support.simulated.scripted_pairs import ScriptedPairs
from tunegate.artifacts.builds import Build, RuntimeChoice
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.measurements import Histogram, Launch
from tunegate.config import GateConfig
from tunegate.errors import MeasurementError
from tunegate.measure.election import MAX_SIDE_SECONDS, Launching, Race
from tunegate.measure.selftest import INJECTED_PERCENT, Qualification, qualify
from tunegate.ports import Clock, ProbeThresholds
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


class SlowClock:
    """Time that passes between two looks at it."""

    def __init__(self, step_seconds: float) -> None:
        self._step_seconds, self._now = step_seconds, 0.0

    def monotonic(self) -> float:
        self._now += self._step_seconds
        return self._now

    time = monotonic


def candidate(runtime: str) -> Build:
    return msgspec.structs.replace(make_build(runtime), runtime=runtime, title=runtime.upper())


def raced(
    effects: Sequence[float | None],
    *,
    seconds: float = 60.0,
    clock: Clock = time,
    needed: Collection[str] = (),
    names: str = "abc",
) -> tuple[Build, RuntimeChoice, int]:
    """The winner of a, which leads, b and c, its choice, and the number of launches."""
    builds = {name: candidate(name) for name in names}
    pairs = ScriptedPairs(effects)
    launching = Launching(benchmarker=pairs, clock=clock, out=Path(), seconds=seconds)
    won = Race(builds, builds["a"], launching, needed).won(RuntimeChoice())
    assert won.choice is not None
    return won, won.choice, pairs.asked


def test_each_is_launched_and_has_its_median_time() -> None:
    won, choice, launches = raced([-0.4, -0.6])
    assert (won.runtime, launches) == ("c", 2)
    assert [(each.candidate, each.ms) for each in choice.times] == [
        ("a", 1.0),
        ("b", 0.6),
        ("c", 0.4),
    ]


def test_little_time_is_enough_for_one_launch_of_each_candidate() -> None:
    won, choice, launches = raced([-0.4, -0.39], seconds=0.0)
    assert (won.runtime, launches) == ("b", 2)
    assert choice.refused == ()
    assert choice.is_complete


def test_what_the_time_does_not_suffice_for_is_not_elected_and_says_so() -> None:
    won, choice, launches = raced([-0.4], clock=SlowClock(MAX_SIDE_SECONDS))
    assert (won.runtime, launches) == ("b", 1)
    assert [(each.title, each.reason) for each in choice.refused] == [
        ("C", "not measured: the time of the election was over")
    ]
    assert (choice.is_complete, choice.is_cut_short) == (False, True)


def test_where_one_broke_the_time_is_not_all_that_was_missing() -> None:
    clock = SlowClock(MAX_SIDE_SECONDS / 3)
    _, choice, launches = raced([-0.4, None], clock=clock, names="abcd")
    assert (launches, len(choice.refused)) == (2, 2)
    assert (choice.is_complete, choice.is_cut_short) == (False, False)


@pytest.mark.parametrize(
    ("effects", "winner", "broken"), [([None, -0.4], "c", "B"), ([-0.4, None], "b", "C")]
)
def test_a_challenger_that_cannot_be_measured_is_refused_by_name(
    effects: list[float | None], winner: str, broken: str
) -> None:
    won, choice, launches = raced(effects)
    assert (won.runtime, won.error, launches) == (winner, None, 2)
    assert [(each.title, each.reason) for each in choice.refused] == [
        (broken, "not measured: no answer in 120 s")
    ]
    assert broken not in [each.title for each in choice.times]


def test_a_challenger_that_breaks_later_is_refused_too() -> None:
    won, choice, _ = raced([0.01, 0.02, None, 0.01, 0.01])
    assert won.runtime == "a"
    assert [each.title for each in choice.refused] == ["B"]


def test_a_needed_challenger_that_breaks_ends_the_race() -> None:
    with pytest.raises(MeasurementError, match="no answer"):
        raced([-0.4, None], needed={"c"})
