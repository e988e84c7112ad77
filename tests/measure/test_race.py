from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
import pytest

from tests.support.measured_cells import make_build
from tests.support.simulated.scripted_pairs import ScriptedPairs
from tunegate.artifacts.builds import Build, RuntimeChoice
from tunegate.errors import MeasurementError
from tunegate.measure.election import MAX_SIDE_SECONDS, Launching, Race
from tunegate.ports import Clock


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
