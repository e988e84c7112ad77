from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.replayed_gates import Replayed, gates, replay
from tunegate.decide.sequential import PLANNED

STEADY = [0.0005, -0.0005] * (PLANNED[-1] // 2)
QUIET = [0.001] * (3 * PLANNED[-1])


@pytest.mark.parametrize(
    ("slowdown", "outcome"), [(0.0, "pass"), (0.03, "inconclusive"), (0.06, "fail")]
)
def test_a_steady_machine_decides_at_once_but_for_the_margin_itself(
    slowdown: float, outcome: str
) -> None:
    effects = [effect + math.log1p(slowdown) for effect in STEADY]
    found = replay(effects, QUIET[:60], 3.0)
    assert found is not None
    assert found.outcome == outcome
    if outcome != "inconclusive":
        assert found.launches == PLANNED[0]


def test_gates_share_no_launch() -> None:
    found = gates(STEADY * 3, QUIET, 0.0, 3.0)
    assert sum(each.launches for each in found) == 3 * PLANNED[-1]
    assert len(found) == 3 * PLANNED[-1] // PLANNED[0]


def test_a_launch_that_was_disturbed_is_made_up_for() -> None:
    effects = [0.0, -0.9, *STEADY]
    found = replay(effects, [0.001, 0.5, *QUIET[: len(STEADY)]], 3.0)
    assert found == Replayed("pass", 5)


def test_a_series_that_ends_too_early_decides_nothing() -> None:
    assert replay([0.02, 0.03, 0.04, 0.03, 0.02], QUIET[:5], 3.0) is None


@given(st.lists(st.floats(-0.02, 0.02), min_size=PLANNED[-1], max_size=PLANNED[-1]))
def test_more_slowdown_never_turns_a_fail_into_a_pass(effects: list[float]) -> None:
    before = replay(effects, QUIET[:60], 3.0)
    after = replay([effect + 0.05 for effect in effects], QUIET[:60], 3.0)
    assert before is not None
    assert after is not None
    assert not (before.outcome == "fail" and after.outcome == "pass")
