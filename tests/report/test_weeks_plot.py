from __future__ import annotations

from tunegate.artifacts.history import CostSum, ModelCost
from tunegate.report.costs_page import weeks_plot


def week(number: int, **cost: float) -> CostSum:
    return CostSum(name=f"2026-W{number}", runs=1, cost=ModelCost(**cost))


def test_dollars_are_drawn_where_they_are_known_and_minutes_elsewhere() -> None:
    assert "USD a week" in weeks_plot([week(1, usd=2.0, seconds=60)])
    assert "minutes a week" in weeks_plot([week(1, seconds=60)])
    assert weeks_plot([]) == ""


def test_a_year_at_most_is_drawn_and_its_labels_do_not_touch() -> None:
    drawn = weeks_plot([week(number, usd=1.0) for number in range(80)])
    assert "in 52 weeks" in drawn
    assert drawn.count("2026-W") <= 5
