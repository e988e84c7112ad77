"""How trials are shared: never more than there are, and nobody who matters is left out."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tunegate.plan import allocation
from tunegate.plan.allocation import FIRST_BATCH, SHARE_THAT_MATTERS, Demand, divide, share_trials
from tunegate.tune.parallel_measurement import FIRST_CEILING, PUBLISHED, Degree, adjusted

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
def test_all_is_given_away_where_anything_can_be_gained(needs: list[Demand], budget: int) -> None:
    assume(any(one.gain_ms > 0 for one in needs))
    assert sum(share_trials(needs, budget)) == budget


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


@given(many, trials, st.data())
def test_a_task_that_grows_heavier_keeps_its_share_while_the_same_tasks_matter(
    needs: list[Demand], budget: int, data: st.DataObject
) -> None:
    """The first batches of the rest grow where others cease to matter beside the task."""
    assume(needs)
    index = data.draw(st.integers(0, len(needs) - 1))
    heavier = list(needs)
    heavier[index] = msgspec.structs.replace(needs[index], weight=needs[index].weight * 2)
    assume(mattering(needs) == mattering(heavier))
    before, after = share_trials(needs, budget)[index], share_trials(heavier, budget)[index]
    assert after >= before


def mattering(needs: list[Demand]) -> list[int]:
    total_ms = sum(one.weight * one.now_ms for one in needs)
    return [
        index
        for index, one in enumerate(needs)
        if one.gain_ms and one.weight * one.now_ms >= SHARE_THAT_MATTERS * total_ms
    ]


@given(many, st.integers(0, 2000))
def test_all_that_matter_get_a_first_batch_before_any_gets_its_sixty_fourth(
    needs: list[Demand], budget: int
) -> None:
    shares = share_trials(needs, budget)
    served = [shares[index] for index in mattering(needs)]
    assert max(shares, default=0) < 64 or min(served, default=64) >= FIRST_BATCH


def test_a_scarce_budget_serves_all_that_matter_with_less() -> None:
    assert share_trials([need(5), need(5), need(5), need(5)], 16) == (4, 4, 4, 4)


def test_a_budget_for_few_serves_base_and_head_in_turn() -> None:
    of_base = [need(ms, is_of_base_alone=True) for ms in (50, 40)]
    assert share_trials([*of_base, need(1), need(9)], 4) == (2, 0, 0, 2)
    of_head = [need(ms) for ms in (50, 40)]
    assert share_trials([*of_head, need(9, is_of_base_alone=True)], 4) == (2, 0, 2)


def test_a_task_that_hardly_matters_gets_a_look_when_there_is_plenty() -> None:
    needs = [need(100), need(0.01)]
    assert share_trials(needs, 8)[1] == 0
    assert share_trials(needs, 64)[1] == 2


def test_four_times_the_gain_is_twice_the_share() -> None:
    first, second = share_trials([need(4), need(1)], 3000)
    assert first == pytest.approx(2 * second, abs=2)


@given(st.lists(st.floats(0, 1e6), max_size=30), st.integers(0, 10**6))
@example([5e-324, 5e-324], 5)
def test_dividing_gives_each_the_floor_of_its_quota_at_least(
    pulls: list[float], total: int
) -> None:
    parts = divide(pulls, total)
    if any(pulls):
        assert sum(parts) == total
        quotas = [pull / sum(pulls) * total for pull in pulls]
        assert all(
            part >= int(quota * (1 - 1e-9)) for part, quota in zip(parts, quotas, strict=True)
        )
    else:
        assert sum(parts) == 0


def test_the_smallest_pull_there_is_gets_all_where_nothing_else_pulls() -> None:
    assert divide([0.0, 5e-324], 3) == (0, 3)


def test_what_matters_takes_a_share_of_the_time_and_can_gain() -> None:
    demands = [need(10.0), need(0.01), need(5.0, headroom=0.0), need(0.01, weight=100)]
    assert allocation.mattering(demands) == [0, 3]


# DOPpler's control law: grow, shrink, never stand still where it is too much.

degrees = st.builds(Degree, now=st.integers(1, 128), ceiling=st.integers(1, FIRST_CEILING))
errors = st.floats(0, 2)


def after(*disturbed: bool, most: int = 128) -> list[int]:
    """The degrees from batch to batch."""
    degree, found = Degree(), [1]
    for is_disturbed in disturbed:
        degree = adjusted(degree, error=0.5 if is_disturbed else 0.0, failures=0, most=most)
        found.append(degree.now)
    return found


def test_undisturbed_batches_grow_by_the_most_a_step_may_be() -> None:
    assert after(False, False, False) == [1, 9, 17, 25]


def test_a_disturbed_batch_costs_a_fifth_of_the_degree_and_says_where_the_ceiling_is() -> None:
    degree = adjusted(Degree(now=25, ceiling=128), error=0.06, failures=0, most=128)
    assert degree == Degree(now=20, ceiling=23)


def test_it_creeps_up_to_the_ceiling_and_then_beyond_it() -> None:
    degree, path = Degree(now=20, ceiling=23), []
    for _ in range(4):
        degree = adjusted(degree, error=0.0, failures=0, most=128)
        path.append(degree.now)
    assert path == [23, 26, 31, 39]


def test_a_second_disturbance_at_the_ceiling_leaves_the_ceiling_there() -> None:
    assert adjusted(Degree(now=23, ceiling=23), error=1.0, failures=0, most=128).ceiling == 24


def test_failures_that_only_parallelism_caused_count_like_an_error() -> None:
    calm = adjusted(Degree(now=40, ceiling=128), error=0.0, failures=2, most=128)
    broken = adjusted(Degree(now=40, ceiling=128), error=0.0, failures=3, most=128)
    assert broken.now < 40 < calm.now


@pytest.mark.parametrize("now", [2, 3, 4])
def test_it_falls_from_small_degrees_too_where_the_published_step_stands_still(now: int) -> None:
    assert int(0.8 * (now + 1)) == now
    assert adjusted(Degree(now=now), error=1.0, failures=0, most=128).now == now - 1


@given(degrees, errors, st.integers(0, 128), st.integers(1, 64))
def test_a_degree_stays_between_one_and_the_devices_end(
    degree: Degree, error: float, failures: int, most: int
) -> None:
    found = adjusted(degree, error=error, failures=failures, most=most)
    assert found.ceiling >= 1
    if error <= PUBLISHED.tolerance and not failures:
        assert 1 <= found.now <= most


@given(degrees, st.floats(0.0501, 2))
def test_too_much_always_becomes_less(degree: Degree, error: float) -> None:
    found = adjusted(degree, error=error, failures=0, most=128)
    assert found.now < degree.now or found.now == 1


@given(degrees, st.floats(0, 0.05))
def test_what_is_precise_enough_grows_until_the_end(degree: Degree, error: float) -> None:
    assert adjusted(degree, error=error, failures=0, most=1000).now > degree.now
