"""The cap: what it resolves to, and when which limit is reached."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.simulated.hand_clock import HandClock
from tunegate.artifacts.plans import Budget
from tunegate.config import BudgetConfig, TargetConfig
from tunegate.errors import ConfigError
from tunegate.tune.batches import BudgetMeter
from tunegate.tune.budget import Spending, budget_of, clock_limit, least_gain, resolve_budget
from tunegate.tune.headroom import end_to_end_ms, extended
from tunegate.tune.improvement import TaskState
from tunegate.tune.next_task import RemainingBudget

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


# Seconds and trials that are left, and what is kept of them for the end.


def test_a_budget_of_seconds_is_spent_by_the_clock() -> None:
    watch = HandClock(100.0)
    spending = BudgetMeter(Budget(seconds=60.0, trials=None), watch)
    watch.now += 50.0
    assert spending.seconds_left == 9.0  # a second is for the end
    assert spending.left(12, reserve=4.0) == RemainingBudget(
        trials=None, seconds=5.0, spent_seconds=50.0
    )
    assert not spending.is_out()
    assert spending.is_out(reserve=9.0)
    watch.now += 9.0
    assert spending.is_out()
    assert spending.left(12, reserve=4.0).seconds == 0.0


def test_a_small_budget_keeps_a_twentieth_for_the_end() -> None:
    watch = HandClock(100.0)
    spending = BudgetMeter(Budget(seconds=20.0, trials=None), watch)
    assert spending.seconds_left == pytest.approx(19.0)


def test_a_budget_of_trials_is_spent_by_what_is_used() -> None:
    watch = HandClock(100.0)
    spending = BudgetMeter(Budget(seconds=None, trials=20), watch)
    watch.now += 1e6
    assert (spending.trials_left(12), spending.trials_left(30)) == (8, 0)
    assert spending.seconds_left is None
    assert not spending.is_out()


def test_winners_are_given_a_second_each_and_never_more_than_a_part_of_it_all() -> None:
    watch = HandClock(100.0)
    seconds = {
        cap: BudgetMeter(Budget(seconds=cap, trials=None), watch).confirmation_seconds(30, trials=1)
        for cap in (600.0, 60.0, None)
    }
    assert seconds == {600.0: 32.0, 60.0: 9.0, None: 0.0}


def test_a_short_budget_keeps_nothing_for_winners_before_its_first_trial() -> None:
    spending = BudgetMeter(Budget(seconds=30.0, trials=None), watch := HandClock(100.0))
    watch.now += 26.0
    assert not spending.is_out(spending.confirmation_seconds(4, trials=0))
    assert spending.is_out(spending.confirmation_seconds(4, trials=1))


# The end-to-end estimate counts every task.


def test_all_tasks_count_measured_exhausted_or_never_started() -> None:
    states = [
        TaskState(weight=2, prior_ms=10.0, best_ms=1.5),
        TaskState(weight=1, prior_ms=4.0),
        TaskState(weight=3, prior_ms=9.0, best_ms=2.0, exhausted=True),
    ]
    assert end_to_end_ms(states) == 2 * 1.5 + 4.0 + 3 * 2.0


def test_the_curve_grows_only_when_the_estimate_moves() -> None:
    curve = extended(((0.0, 10.0),), seconds=3.0, estimate_ms=10.0)
    assert extended(curve, seconds=5.0, estimate_ms=8.0) == ((0.0, 10.0), (5.0, 8.0))
