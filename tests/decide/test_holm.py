"""Cells that share the error of a fail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from tunegate.decide.decision import FAIL_ERROR, bounds, p_value, shares

MARGIN = math.log1p(0.03)
CHANCES = some.lists(some.floats(0, 1), min_size=1, max_size=8)


def test_a_cell_alone_has_all_of_the_error() -> None:
    assert shares([0.5]) == (1,)


def test_after_the_clearest_has_failed_the_next_shares_with_one_less() -> None:
    assert shares([0.004, 0.0001, 0.9]) == (2, 3, 1)


def test_after_one_that_is_not_clear_nobody_fails_who_would_not_have() -> None:
    assert shares([0.004, 0.0045, 0.0048]) == (3, 3, 3)


@given(CHANCES)
def test_no_cell_shares_with_more_than_there_are_and_one_shares_with_all(
    p_values: list[float],
) -> None:
    found = shares(p_values)
    assert max(found) == len(p_values)
    assert min(found) >= 1


@given(CHANCES)
def test_whoever_fails_by_an_even_split_fails_here_too(p_values: list[float]) -> None:
    for chance, share in zip(p_values, shares(p_values), strict=True):
        if chance <= FAIL_ERROR / len(p_values):
            assert chance <= FAIL_ERROR / share


@given(
    some.lists(some.floats(-0.2, 0.3), min_size=4, max_size=20),
    some.integers(1, 8),
    some.integers(1, 9),
)
def test_the_chance_agrees_with_the_bound(effects: list[float], analyses: int, cells: int) -> None:
    chance = p_value(effects, margin=MARGIN, analyses=analyses)
    low = bounds(effects, analyses=analyses, cells=cells).low
    if abs(low - MARGIN) > 1e-9:
        assert (chance < FAIL_ERROR / cells) == (low > MARGIN)


@pytest.mark.parametrize("cells", [3, 8])
def test_of_cells_on_the_margin_hardly_one_family_in_a_hundred_fails(cells: int) -> None:
    """Half of the cells are far over the margin, which is what gives the others a larger share."""
    random = np.random.default_rng(7)
    families, wrong = 4000, 0
    for _ in range(families):
        true = [MARGIN] * (cells - cells // 2) + [0.2] * (cells // 2)
        p_values = [
            p_value(random.normal(mean, 0.01, 6).tolist(), margin=MARGIN, analyses=1)
            for mean in true
        ]
        fails = [c <= FAIL_ERROR / s for c, s in zip(p_values, shares(p_values), strict=True)]
        wrong += any(fails[: cells - cells // 2])
    assert wrong / families <= FAIL_ERROR + 3 * math.sqrt(FAIL_ERROR / families)
