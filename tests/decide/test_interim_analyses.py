from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunegate.decide.sequential import PLANNED, affordable_analyses, is_hopeless

seconds = st.floats(0.1, 1e4)


def test_hopeless_is_more_than_four_times_what_can_be_paid_for() -> None:
    assert is_hopeless(25, 6)
    assert not is_hopeless(24, 6)
    assert not is_hopeless(None, 6)


def test_analyses_that_do_not_fit_the_budget_are_dropped_before_the_start() -> None:
    assert affordable_analyses(100.0, 10.0) == (4, 6, 9)
    assert affordable_analyses(90.0, 10.0) == (4, 6, 9)
    assert affordable_analyses(1.0, 10.0) == (4,)


@given(seconds, seconds)
def test_analyses_are_the_first_planned_ones_and_fit_but_for_the_very_first(
    budget: float, launch: float
) -> None:
    analyses = affordable_analyses(budget, launch)
    assert analyses == PLANNED[: len(analyses)]
    assert analyses
    assert all(count * launch <= budget for count in analyses[1:])
