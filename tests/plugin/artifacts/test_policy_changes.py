from __future__ import annotations

import pytest

from tunegate.artifacts.policy_changes import Effect, PolicyChange


@pytest.mark.parametrize(
    ("effect", "weakens"), [("tightened", False), ("loosened", True), ("changed", True)]
)
def test_all_that_is_not_stricter_than_before_weakens(effect: Effect, weakens: bool) -> None:
    change = PolicyChange(key="gate.seconds", old="1", new="2", effect=effect, counts="now")
    assert change.weakens == weakens
