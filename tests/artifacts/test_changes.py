from __future__ import annotations

import pytest

from tunegate.artifacts.changes import Effect, PolicyChange, Revisions


def test_the_base_judges_where_nothing_newer_does() -> None:
    assert Revisions(base="b", head="h").judged_by == "b"
    assert Revisions(base="b", head="h", policy="p").judged_by == "p"
    assert Revisions(base=None, head="h").judged_by is None


def test_rules_since_the_base_are_the_heads_own_only_where_the_base_judges() -> None:
    assert Revisions(base="b", head="h", policy="p").forked_at == "b"
    assert Revisions(base="b", head="h").forked_at is None
    assert Revisions(base="b", head="h", policy="p", release="v1").forked_at is None


@pytest.mark.parametrize(
    ("effect", "weakens"), [("tightened", False), ("loosened", True), ("changed", True)]
)
def test_all_that_is_not_stricter_than_before_weakens(effect: Effect, weakens: bool) -> None:
    change = PolicyChange(key="gate.seconds", old="1", new="2", effect=effect, counts="now")
    assert change.weakens == weakens
