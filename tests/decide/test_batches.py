from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.decide.decision import FEWEST, batch_means, bounds, decide_cell, share_alone

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
