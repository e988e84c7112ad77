"""Shares of trials: never more than there are, and nobody who matters is left out."""

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tunegate.plan.allocation import Demand, divide, share_trials
from tunegate.tune.parallel_measurement import FIRST_CEILING, TOLERANCE, Degree, adjust_degree

headrooms = st.sampled_from([0.0, 0.05, 0.3, 0.9])
demands = st.builds(
    Demand,
    weight=st.integers(1, 24),
    now_ms=st.floats(0.001, 1000),
    headroom=headrooms,
    is_of_base_alone=st.booleans(),
)
many = st.lists(demands, max_size=40)
trials = st.integers(0, 5000)


def need(
    now_ms: float, *, weight: int = 1, headroom: float = 0.9, is_of_base_alone: bool = False
) -> Demand:
    return Demand(
        weight=weight, now_ms=now_ms, headroom=headroom, is_of_base_alone=is_of_base_alone
    )


@given(many, trials)
def test_the_shares_never_exceed_the_budget(needs: list[Demand], budget: int) -> None:
    shares = share_trials(needs, budget)
    assert len(shares) == len(needs)
    assert all(share >= 0 for share in shares)
    assert sum(shares) <= budget


@given(many, trials)
def test_what_has_no_room_gets_none(needs: list[Demand], budget: int) -> None:
    shares = share_trials(needs, budget)
    assert not any(share for one, share in zip(needs, shares, strict=True) if not one.headroom)


@given(many, trials, st.data())
def test_a_heavier_task_never_gets_less_than_a_lighter_one_like_it(
    needs: list[Demand], budget: int, data: st.DataObject
) -> None:
    assume(needs)
    index = data.draw(st.integers(0, len(needs) - 1))
    twin = msgspec.structs.replace(needs[index], weight=needs[index].weight + 3)
    shares = share_trials([*needs, twin], budget)
    assert shares[-1] >= shares[index]


def test_a_budget_for_few_serves_base_and_head_in_turn() -> None:
    of_base = [need(ms, is_of_base_alone=True) for ms in (50, 40)]
    assert share_trials([*of_base, need(1), need(9)], 4) == (2, 0, 0, 2)
    of_head = [need(ms) for ms in (50, 40)]
    assert share_trials([*of_head, need(9, is_of_base_alone=True)], 4) == (2, 0, 2)


def test_four_times_the_gain_is_twice_the_share() -> None:
    first, second = share_trials([need(4), need(1)], 3000)
    assert first == pytest.approx(2 * second, abs=2)


@given(st.lists(st.floats(0, 1e6), max_size=30), st.integers(0, 10**6))
@example([5e-324, 5e-324], 5)
def test_each_part_is_the_floor_of_its_quota_at_least(pulls: list[float], total: int) -> None:
    parts = divide(pulls, total)
    if any(pulls):
        assert sum(parts) == total
        quotas = [pull / sum(pulls) * total for pull in pulls]
        assert all(part >= int(due * (1 - 1e-9)) for part, due in zip(parts, quotas, strict=True))
    else:
        assert sum(parts) == 0


# DOPpler's control law: grow, shrink, never stand still where it is too much.

degrees = st.builds(Degree, now=st.integers(1, 128), ceiling=st.integers(1, FIRST_CEILING))
errors = st.floats(0, 2)


def after(*disturbed: bool, most: int = 128) -> list[int]:
    """The degrees from batch to batch."""
    degree, found = Degree(), [1]
    for is_disturbed in disturbed:
        degree = adjust_degree(degree, error=0.5 if is_disturbed else 0.0, failures=0, most=most)
        found.append(degree.now)
    return found


def test_undisturbed_batches_grow_by_the_most_a_step_may_be() -> None:
    assert after(False, False, False) == [1, 9, 17, 25]


def test_a_disturbed_batch_costs_a_fifth_of_the_degree_and_says_where_the_ceiling_is() -> None:
    degree = adjust_degree(Degree(now=25, ceiling=128), error=0.06, failures=0, most=128)
    assert degree == Degree(now=20, ceiling=23)


def test_failures_that_only_parallelism_caused_count_like_an_error() -> None:
    calm = adjust_degree(Degree(now=40, ceiling=128), error=0.0, failures=2, most=128)
    broken = adjust_degree(Degree(now=40, ceiling=128), error=0.0, failures=3, most=128)
    assert broken.now < 40 < calm.now


@given(degrees, errors, st.integers(0, 128), st.integers(1, 64))
def test_a_degree_stays_between_one_and_the_devices_end(
    degree: Degree, error: float, failures: int, most: int
) -> None:
    found = adjust_degree(degree, error=error, failures=failures, most=most)
    assert found.ceiling >= 1
    if error <= TOLERANCE and not failures:
        assert 1 <= found.now <= most


@given(degrees, st.floats(0.0501, 2))
def test_too_much_always_becomes_less(degree: Degree, error: float) -> None:
    found = adjust_degree(degree, error=error, failures=0, most=128)
    assert found.now < degree.now or found.now == 1


@given(degrees, st.floats(0, 0.05))
def test_what_is_precise_enough_grows_until_the_end(degree: Degree, error: float) -> None:
    assert adjust_degree(degree, error=error, failures=0, most=1000).now > degree.now
