"""The cap: what it resolves to, and when which limit is reached."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.plans import Budget
from tunegate.config import BudgetConfig, TargetConfig
from tunegate.errors import ConfigError
from tunegate.tune.budget import Spending, budget_of, clock_limit, least_gain, resolve_budget

amounts = st.just(0.0) | st.floats(1e-6, 1e6)  # of money and time, not of what floats can hold


def test_one_cent_at_three_sixty_an_hour_is_ten_seconds() -> None:
    config = BudgetConfig(minutes=10, usd=0.01, usd_per_hour=3.6)
    budget = resolve_budget(config, TargetConfig(name="cpu"))
    assert budget.seconds == pytest.approx(10.0)
    assert Spending(budget=budget, seconds=9.9).limit is None
    assert Spending(budget=budget, seconds=10.01).limit == "usd"


def test_the_price_of_the_target_comes_before_that_of_the_budget() -> None:
    config = BudgetConfig(usd=1, usd_per_hour=1)
    target = TargetConfig(name="gpu", usd_per_hour=36)
    assert resolve_budget(config, target).usd_per_hour == 36
    assert resolve_budget(config, target).seconds == pytest.approx(100)


def test_money_without_a_price_is_refused_with_the_key_to_set() -> None:
    with pytest.raises(ConfigError, match=r"budget\.usd: 5 .* 'gpu'.* Set usd-per-hour"):
        resolve_budget(BudgetConfig(usd=5), TargetConfig(name="gpu"))


def test_a_machine_that_costs_nothing_is_limited_by_time_alone() -> None:
    config = BudgetConfig(minutes=1, usd=0.0)
    budget = resolve_budget(config, TargetConfig(name="cpu", usd_per_hour=0.0))
    assert budget.seconds == 60
    assert clock_limit(budget) == "seconds"


def test_no_money_is_no_time_where_time_costs() -> None:
    config = BudgetConfig(usd=0.0, usd_per_hour=2.0)
    budget = resolve_budget(config, TargetConfig(name="cpu"))
    assert Spending(budget=budget).limit == "usd"


@pytest.mark.parametrize(
    ("seconds", "trials", "limit"),
    [(59.9, 9, None), (60.0, 9, "seconds"), (1.0, 10, "trials"), (61.0, 11, "trials")],
)
def test_the_limit_that_is_reached_is_named(seconds: float, trials: int, limit: str | None) -> None:
    spending = Spending(budget=Budget(seconds=60, trials=10), seconds=seconds, trials=trials)
    assert spending.limit == limit
    assert spending.is_spent == (limit is not None)


def test_without_limits_nothing_is_ever_spent_up() -> None:
    spending = Spending(budget=Budget(seconds=None, trials=None), seconds=1e9, trials=10**9)
    assert (spending.limit, spending.seconds_left, spending.trials_left) == (None, None, None)


def test_a_clock_that_steps_back_gives_nothing_back() -> None:
    spending = Spending(budget=Budget(seconds=60, trials=10)).at(seconds=30, trials=4)
    assert spending.at(seconds=10, trials=2) == spending


def test_the_cost_has_no_money_where_no_price_is_known() -> None:
    assert Spending(budget=Budget(seconds=60, trials=None), seconds=30).cost.usd is None


@given(amounts, st.none() | amounts, st.none() | amounts)
def test_within_the_seconds_neither_time_nor_money_is_overspent(
    seconds: float, usd: float | None, price: float | None
) -> None:
    budget = budget_of(seconds, trials=None, usd=usd, usd_per_hour=price)
    assert budget.seconds is not None
    assert budget.seconds <= seconds
    paid = Spending(budget=budget, seconds=budget.seconds).usd
    if usd is not None and paid is not None:
        assert paid <= usd * (1 + 1e-9)


def test_the_stricter_of_two_least_gains_counts() -> None:
    both = BudgetConfig(min_gain_percent_per_minute=1.0, min_gain_percent_per_usd=40.0)
    assert least_gain(both, usd_per_hour=3.0) == 2.0
    assert least_gain(both, usd_per_hour=0.6) == 1.0
    assert least_gain(BudgetConfig(), usd_per_hour=None) == 0.5


def test_a_gain_for_money_without_a_price_is_refused_with_the_key_to_set() -> None:
    config = BudgetConfig(min_gain_percent_per_usd=1.0)
    with pytest.raises(ConfigError, match="min-gain-percent-per-usd needs a price"):
        resolve_budget(config, TargetConfig(name="cpu"))
