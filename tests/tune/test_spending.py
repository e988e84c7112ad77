"""Seconds and trials that are left, and what is kept of them for the end."""

from __future__ import annotations

import pytest

from tests.support.simulated.hand_clock import HandClock
from tunegate.artifacts.plans import Budget
from tunegate.tune.batches import BudgetMeter
from tunegate.tune.next_task import RemainingBudget


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
    assert BudgetMeter(Budget(seconds=600.0, trials=None), watch).confirmation_seconds(30) == 32.0
    assert BudgetMeter(Budget(seconds=60.0, trials=None), watch).confirmation_seconds(30) == 9.0
    assert BudgetMeter(Budget(seconds=None, trials=9), watch).confirmation_seconds(30) == 0.0
