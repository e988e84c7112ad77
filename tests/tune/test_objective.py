import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.simulated.hand_clock import HandClock
from tests.support.tuning_tasks import make_task
from tunegate.artifacts.changes import ModelSide
from tunegate.artifacts.plans import Budget
from tunegate.config import BudgetConfig, TargetConfig
from tunegate.errors import ConfigError
from tunegate.tune import budget as budgets
from tunegate.tune.batches import BudgetMeter
from tunegate.tune.headroom import end_to_end_ms
from tunegate.tune.improvement import MeasuredBatch, TaskState
from tunegate.tune.next_task import RemainingBudget, choose, evenly_served


def timed(name: str, milliseconds: float, weight: int = 1) -> budgets.TimedTask:
    return make_task(name, weight=weight), milliseconds


def test_every_model_must_be_fast_enough() -> None:
    assert budgets.is_reached({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.5})
    assert not budgets.is_reached({"a": 1.0, "b": 2.6}, {"a": 1.0, "b": 2.5})


shards = st.lists(
    st.lists(st.tuples(st.floats(0.01, 100), st.integers(1, 9)), max_size=4), min_size=1, max_size=5
)


@given(shards, st.floats(0.1, 50))
def test_the_parts_of_all_shards_are_the_target(
    case: list[list[tuple[float, int]]], target_ms: float
) -> None:
    tasks = [
        [timed(f"{shard}-{i}", ms, weight) for i, (ms, weight) in enumerate(row)]
        for shard, row in enumerate(case)
    ]
    parts = budgets.parts_of_target(tasks, target_ms)
    assert len(parts) == len(case)
    if any(case):
        assert sum(part for shard in parts for part in shard.values()) == pytest.approx(target_ms)
    for mine, part in zip(tasks, parts, strict=True):
        assert set(part) == set(budgets.model_ms(mine))


BASE: ModelSide = ("m", "base")
HEAD: ModelSide = ("m", "head")
BATCH = 8


def state(
    *sides: ModelSide, trials: int = 0, ms: float = 1.0, in_flight: int = 0, exhausted: bool = False
) -> TaskState:
    batch = MeasuredBatch(trials=trials, seconds=1.0, best_ms=ms)
    return TaskState(
        weight=1,
        prior_ms=ms,
        history=(batch,) if trials else (),
        in_flight=in_flight,
        exhausted=exhausted,
        sides=sides,
    )


def served(*states: TaskState) -> list[int]:
    every = range(len(states))
    return evenly_served(states, every, every, BATCH)


def test_a_side_that_is_a_batch_ahead_waits() -> None:
    assert served(state(BASE, trials=16), state(HEAD, trials=8)) == [1]
    assert served(state(BASE, trials=15), state(HEAD, trials=8)) == [0, 1]


def test_models_are_compared_by_themselves_and_a_new_one_with_nothing() -> None:
    other: ModelSide = ("n", "head")
    assert served(state(BASE, trials=64), state(other)) == [0, 1]


def test_what_waits_for_each_other_goes_on_where_nothing_is_out() -> None:
    crossed = [
        state(BASE, ("n", "head"), trials=64),
        state(HEAD, trials=8),
        state(("n", "base"), trials=8),
    ]
    assert evenly_served(crossed, [0], [0, 1, 2], BATCH) == [0]
    pending = [*crossed[:2], state(("n", "base"), trials=8, in_flight=8)]
    assert evenly_served(pending, [0], [0, 1, 2], BATCH) == []


@given(st.floats(1.0, 20.0), st.floats(1.0, 20.0), st.floats(0.9, 0.99), st.floats(0.9, 0.99))
def test_one_changed_layer_gets_the_same_trials_on_both_sides(
    base_ms: float, head_ms: float, base_gain: float, head_gain: float
) -> None:
    """Whichever of the two is larger, or easier to improve."""
    best_ms, gains = [base_ms, head_ms], [base_gain, head_gain]
    states = [state(BASE, ms=base_ms), state(HEAD, ms=head_ms)]
    for _ in range(16):
        choice = choose(states, RemainingBudget(trials=1000, seconds=1000.0))
        assert choice is not None
        at = choice.index
        best_ms[at] *= gains[at]
        states[at] = after_a_batch(states[at], choice.candidates, best_ms[at])
        trials = [each.trials for each in states]
        assert abs(trials[0] - trials[1]) <= BATCH


def after_a_batch(before: TaskState, trials: int, best_ms: float) -> TaskState:
    batch = MeasuredBatch(trials=trials, seconds=trials * 0.4, best_ms=best_ms)
    return msgspec.structs.replace(before, history=(*before.history, batch), best_ms=best_ms)


# The cap: what it resolves to, and when which limit is reached.

amounts = st.just(0.0) | st.floats(1e-6, 1e6)  # of money and time, not of what floats can hold


def test_one_cent_at_three_sixty_an_hour_is_ten_seconds() -> None:
    config = BudgetConfig(minutes=10, usd=0.01, usd_per_hour=3.6)
    budget = budgets.resolve_budget(config, TargetConfig(name="cpu"))
    assert budget.seconds == pytest.approx(10.0)
    assert budgets.Spending(budget=budget, seconds=9.9).limit is None
    assert budgets.Spending(budget=budget, seconds=10.01).limit == "usd"


def test_the_price_of_the_target_comes_before_that_of_the_budget() -> None:
    config = BudgetConfig(usd=1, usd_per_hour=1)
    target = TargetConfig(name="gpu", usd_per_hour=36)
    assert budgets.resolve_budget(config, target).usd_per_hour == 36
    assert budgets.resolve_budget(config, target).seconds == pytest.approx(100)


def test_money_without_a_price_is_refused_with_the_key_to_set() -> None:
    with pytest.raises(ConfigError, match=r"budget\.usd: 5 .* 'gpu'.* Set usd-per-hour"):
        budgets.resolve_budget(BudgetConfig(usd=5), TargetConfig(name="gpu"))


def test_a_machine_that_costs_nothing_is_limited_by_time_alone() -> None:
    config = BudgetConfig(minutes=1, usd=0.0)
    budget = budgets.resolve_budget(config, TargetConfig(name="cpu", usd_per_hour=0.0))
    assert budget.seconds == 60
    assert budgets.clock_limit(budget) == "seconds"


def test_no_money_is_no_time_where_time_costs() -> None:
    config = BudgetConfig(usd=0.0, usd_per_hour=2.0)
    budget = budgets.resolve_budget(config, TargetConfig(name="cpu"))
    assert budgets.Spending(budget=budget).limit == "usd"


@pytest.mark.parametrize(
    ("seconds", "trials", "limit"),
    [(59.9, 9, None), (60.0, 9, "seconds"), (1.0, 10, "trials"), (61.0, 11, "trials")],
)
def test_the_limit_that_is_reached_is_named(seconds: float, trials: int, limit: str | None) -> None:
    spent = budgets.Spending(budget=Budget(seconds=60, trials=10), seconds=seconds, trials=trials)
    assert spent.limit == limit
    assert spent.is_spent == (limit is not None)


def test_without_limits_nothing_is_ever_spent_up() -> None:
    spending = budgets.Spending(budget=Budget(seconds=None, trials=None), seconds=1e9, trials=10**9)
    assert (spending.limit, spending.seconds_left, spending.trials_left) == (None, None, None)


@given(amounts, st.none() | amounts, st.none() | amounts)
def test_within_the_seconds_neither_time_nor_money_is_overspent(
    seconds: float, usd: float | None, price: float | None
) -> None:
    budget = budgets.budget_of(seconds, trials=None, usd=usd, usd_per_hour=price)
    assert budget.seconds is not None
    assert budget.seconds <= seconds
    paid = budgets.Spending(budget=budget, seconds=budget.seconds).usd
    if usd is not None and paid is not None:
        assert paid <= usd * (1 + 1e-9)


def test_the_stricter_of_two_least_gains_counts() -> None:
    both = BudgetConfig(min_gain_percent_per_minute=1.0, min_gain_percent_per_usd=40.0)
    assert budgets.least_gain(both, usd_per_hour=3.0) == 2.0
    assert budgets.least_gain(both, usd_per_hour=0.6) == 1.0
    assert budgets.least_gain(BudgetConfig(), usd_per_hour=None) == 0.5


def test_a_gain_for_money_without_a_price_is_refused_with_the_key_to_set() -> None:
    config = BudgetConfig(min_gain_percent_per_usd=1.0)
    with pytest.raises(ConfigError, match="min-gain-percent-per-usd needs a price"):
        budgets.resolve_budget(config, TargetConfig(name="cpu"))


# Seconds and trials that are left, and what is kept of them for the end.


@pytest.mark.parametrize(("crowding", "seconds_left"), [(0.1, 9.0), (2.0, 8.0), (50.0, 7.0)])
def test_a_busy_machine_takes_longer_to_end_and_a_device_time_to_get(
    crowding: float, seconds_left: float
) -> None:
    watch = HandClock(150.0)
    budget = Budget(seconds=60.0, trials=None)
    assert BudgetMeter(budget, watch, began=100.0, crowding=crowding).seconds_left == seconds_left


def test_a_budget_of_seconds_is_spent_by_the_clock() -> None:
    watch = HandClock(100.0)
    spending = BudgetMeter(Budget(seconds=60.0, trials=None), watch)
    watch.now += 50.0
    assert spending.seconds_left == 9.0  # a second is for the end
    assert spending.remaining(12, reserve=4.0) == RemainingBudget(
        trials=None, seconds=5.0, spent_seconds=50.0
    )
    assert not spending.is_out()
    assert spending.is_out(reserve=9.0)
    watch.now += 9.0
    assert spending.is_out()
    assert spending.remaining(12, reserve=4.0).seconds == 0.0


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
