from __future__ import annotations

from tunegate.artifacts.changes import ModelInput


def test_a_dimension_may_have_a_name() -> None:
    named = ModelInput("x", (None, 8), ("batch", ""))
    assert [named.symbol(axis) for axis in range(2)] == ["batch", ""]
    assert ModelInput("x", (None,)).symbol(0) == ""
