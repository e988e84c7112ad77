import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.decide import guards
from tunegate.decide.decision import FEWEST, batch_means, bounds, decide_cell, share_alone

NOISES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60)


def test_what_is_small_beside_the_margin_counts_however_quiet_the_others_are() -> None:
    assert all(guards.are_undisturbed([0.0001, 0.0001, 0.009, 0.0001], 0.03))


@given(NOISES, st.floats(0.001, 0.5))
def test_most_launches_always_count(noises: list[float], margin: float) -> None:
    assert sum(guards.are_undisturbed(noises, margin)) * 2 >= len(noises)


@given(NOISES, st.floats(0.001, 0.5), st.randoms(use_true_random=False))
def test_the_order_of_launches_does_not_matter(
    noises: list[float], margin: float, rng: random.Random
) -> None:
    mixed = list(enumerate(noises))
    rng.shuffle(mixed)
    kept = guards.are_undisturbed([noise for _, noise in mixed], margin)
    again = {at for (at, _), keep in zip(mixed, kept, strict=True) if keep}
    assert again == {at for at, keep in enumerate(guards.are_undisturbed(noises, margin)) if keep}


@pytest.mark.parametrize(
    ("kept", "lost", "too_many"), [(4, 1, False), (2, 3, False), (4, 2, False), (5, 4, True)]
)
def test_over_a_third_is_too_many_once_there_are_some(kept: int, lost: int, too_many: bool) -> None:
    assert guards.is_too_disturbed([True] * kept + [False] * lost) is too_many


def test_a_burst_has_twelve_launches_or_the_budget_to_pass() -> None:
    assert [count for count in range(20) if guards.may_be_a_burst(count, budget=60)] == list(
        range(12)
    )
    assert not guards.may_be_a_burst(7, budget=6)


def test_the_base_runs_against_itself_first_and_after_every_sixth_launch() -> None:
    assert [count for count in range(1, 15) if guards.is_control_due(count)] == [1, 7, 13]


def test_a_control_trips_over_the_margin_and_over_the_spread() -> None:
    steady, shaky = [0.0, 0.001, -0.001, 0.0], [0.0, 0.05, -0.05, 0.02]
    assert guards.outlying_controls([0.04, -0.05, 0.001], steady, 0.03) == 2
    assert guards.outlying_controls([0.04, -0.05, 0.001], shaky, 0.03) == 0
    assert guards.outlying_controls([0.04], [0.1], 0.03) == 1


MARGIN = math.log1p(0.03)


def in_turn(count: int, high: float, low: float, spread: float = 0.002) -> list[float]:
    rng = random.Random(2)
    return [rng.gauss(high if n % 2 else low, spread) for n in range(count)]


def test_an_effect_that_comes_and_goes_is_decided_as_its_mean() -> None:
    assert decide_cell(bounds(in_turn(19, 0.12, 0.0), analyses=8, cells=1), MARGIN) == "fail"
    assert decide_cell(bounds(in_turn(13, 0.05, -0.05), analyses=8, cells=1), MARGIN) == "pass"


def test_few_launches_are_not_batched() -> None:
    assert share_alone(FEWEST - 1) == 1.0
    assert decide_cell(bounds(in_turn(6, 0.05, -0.05), analyses=8, cells=1), MARGIN) == "undecided"


@given(st.lists(st.floats(-1, 1), min_size=FEWEST, max_size=61))
def test_batches_are_of_neighbours_and_leave_out_the_first_at_most(effects: list[float]) -> None:
    means = batch_means(effects)
    assert len(means) == len(effects) // 2
    assert 2 * sum(means) == pytest.approx(sum(effects[len(effects) % 2 :]))


@pytest.mark.parametrize("count", [9, 13, 28])
def test_the_bounds_of_steady_noise_still_have_their_error(count: int) -> None:
    rng = random.Random(3)
    runs = 3000
    drawn = [
        bounds([rng.gauss(0, 1) for _ in range(count)], analyses=1, cells=1) for _ in range(runs)
    ]
    assert sum(found.high < 0 for found in drawn) / runs <= 0.05 + 0.008
    assert sum(found.low > 0 for found in drawn) / runs <= 0.008 + 0.004
