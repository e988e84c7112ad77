from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.history import COST, DAY, entry, history
from tunegate.artifacts.history import HistoryEntry, ModelCost
from tunegate.report.history_costs import cost_sums, together, week_of

amounts = st.floats(0, 1e6)
costs = st.builds(
    ModelCost,
    tasks=amounts,
    hits=amounts,
    seconds=amounts,
    usd=st.none() | amounts,
    saved_seconds=amounts,
)
entries = st.builds(
    lambda at, model, repository, cost: entry(at, model=model, repository=repository, cost=cost),
    st.integers(-400, 400),
    st.sampled_from("abc"),
    st.sampled_from("xy"),
    st.none() | costs,
)


@given(st.lists(entries))
def test_weeks_repositories_and_models_each_add_up_to_all(found: list[HistoryEntry]) -> None:
    summed = cost_sums(found)
    for rows in (summed.weeks, summed.repositories, summed.models):
        total = together([row.cost for row in rows])
        for name in ("tasks", "hits", "seconds", "saved_seconds"):
            assert getattr(total, name) == pytest.approx(getattr(summed.total.cost, name))
        assert (total.usd is None) == (summed.total.cost.usd is None)
    assert summed.uncounted == sum(each.cost is None for each in found)


def test_two_models_of_one_run_are_one_run() -> None:
    summed = cost_sums([entry(1), entry(1, model="b.onnx"), entry(2)])
    assert summed.total.runs == 2
    assert [row.runs for row in summed.models] == [2, 1]


def test_what_was_not_let_through_costs_and_gains_nothing() -> None:
    cost = ModelCost(seconds=2.0, gained_ms=1.0)
    stati = ("pass", "new", "waived", "warmed", "fail", "error", "cancelled")
    summed = cost_sums([entry(at, status=each, cost=cost) for at, each in enumerate(stati)])
    assert (summed.total.cost.seconds, summed.total.cost.gained_ms) == (14.0, 1.0)


def test_the_most_that_one_run_gained_is_told_with_what_it_cost() -> None:
    """The gains of two runs are of two heads, and don't add."""
    costs = [ModelCost(usd=2.0, gained_ms=1.0), ModelCost(usd=0.5, gained_ms=3.0)]
    (row,) = cost_sums([entry(at, cost=each) for at, each in enumerate(costs)]).models
    assert (row.cost.gained_ms, row.gain_usd, row.cost.usd) == (3.0, 0.5, 2.5)


MONDAY = 1_780_272_000
"""The first second of 2026-06-01."""


def week_at(at: int) -> str:
    return week_of(msgspec.structs.replace(entry(0), at=at))


def test_a_week_begins_on_monday() -> None:
    assert (week_at(MONDAY), week_at(MONDAY - 1)) == ("2026-06-01", "2026-05-25")
    assert week_at(MONDAY + 7 * DAY - 1) == "2026-06-01"


def test_the_last_second_of_all_calendars_has_a_week() -> None:
    assert week_at(253_402_300_799) == "9999-12-27"
    assert week_at(0) == "1969-12-29"


def test_the_dearest_comes_first() -> None:
    cheap, dear = ModelCost(usd=1.0), ModelCost(usd=0.5, gate_usd=3.0)
    summed = cost_sums([entry(1, model="cheap", cost=cheap), entry(1, model="dear", cost=dear)])
    assert [row.name for row in summed.models] == ["dear", "cheap"]


def test_warming_costs_and_what_has_no_cost_does_not() -> None:
    summed = cost_sums(history())
    assert summed.uncounted == 1
    counted = len(history()) - 1
    assert summed.total.cost.seconds == pytest.approx(counted * COST.seconds)
