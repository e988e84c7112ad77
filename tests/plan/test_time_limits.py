"""Limits of time follow the budgets."""

from __future__ import annotations

import pytest

from tunegate.config import BudgetConfig, GateConfig
from tunegate.plan.run_forecast import answer_seconds, build_seconds


@pytest.mark.parametrize(
    ("minutes", "seconds"),
    [(0.0, 300.0), (1.0, 360.0), (10.0, 900.0), (600.0, 900.0), (None, 900.0)],
)
def test_a_build_may_take_as_long_as_tuning_and_five_minutes(
    minutes: float | None, seconds: float
) -> None:
    assert build_seconds(BudgetConfig(minutes=minutes)) == seconds


@pytest.mark.parametrize(("gate", "seconds"), [(10.0, 40.0), (60.0, 90.0), (240.0, 120.0)])
def test_an_answer_may_take_as_long_as_its_cell_and_half_a_minute(
    gate: float, seconds: float
) -> None:
    assert answer_seconds(GateConfig(seconds=gate)) == seconds
