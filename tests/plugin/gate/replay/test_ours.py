from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.gate.looks import PLANNED
from tunegate.gate.replay.ours import gates, replay

STEADY = [0.0005, -0.0005] * (PLANNED[-1] // 2)


@pytest.mark.parametrize(
    ("slowdown", "outcome"), [(0.0, "pass"), (0.03, "inconclusive"), (0.06, "fail")]
)
def test_a_steady_machine_decides_at_once_but_for_the_margin_itself(
    slowdown: float, outcome: str
) -> None:
    effects = [effect + math.log1p(slowdown) for effect in STEADY]
    found = replay(effects, 3.0)
    assert found.outcome == outcome
    if outcome != "inconclusive":
        assert found.launches == PLANNED[0]


def test_gates_share_no_launch() -> None:
    found = gates(STEADY * 3, 0.0, 3.0)
    assert sum(each.launches for each in found) <= 3 * PLANNED[-1]
    assert len(found) == 2 * PLANNED[-1] // PLANNED[0] + 1


@given(st.lists(st.floats(-0.02, 0.02), min_size=PLANNED[-1], max_size=PLANNED[-1]))
def test_more_slowdown_never_turns_a_fail_into_a_pass(effects: list[float]) -> None:
    if replay(effects, 3.0).outcome == "fail":
        assert replay([effect + 0.05 for effect in effects], 3.0).outcome != "pass"
