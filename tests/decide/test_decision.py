from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tunegate.decide.decision import (
    CellDecision,
    batch_means,
    bounds,
    decide_cell,
    p_value,
    projected_launches,
    share_alone,
)

MARGIN = math.log1p(0.03)
EFFECTS = st.lists(st.floats(-0.2, 0.2), min_size=4, max_size=60)
RANK: dict[CellDecision, int] = {"pass": 0, "undecided": 1, "fail": 2}


@pytest.mark.parametrize(
    ("effects", "decision"),
    [
        ([0.100, 0.101, 0.099, 0.100], "fail"),
        ([0.001, -0.001, 0.000, 0.002], "pass"),
        ([-0.10, -0.11, -0.09, -0.10], "pass"),
        ([0.030, 0.029, 0.031, 0.028], "undecided"),
        ([0.2, -0.2, 0.15, -0.1], "undecided"),
    ],
)
def test_what_four_launches_decide(effects: list[float], decision: CellDecision) -> None:
    assert decide_cell(bounds(effects, analyses=3, cells=1), MARGIN) == decision


@given(EFFECTS, st.floats(0, 0.5))
def test_a_slower_head_never_gets_a_better_decision(effects: list[float], more: float) -> None:
    before = decide_cell(bounds(effects, analyses=8, cells=1), MARGIN)
    after = decide_cell(bounds([e + more for e in effects], analyses=8, cells=1), MARGIN)
    assert RANK[after] >= RANK[before]


@given(EFFECTS)
def test_it_never_passes_or_fails_while_the_interval_crosses_the_margin(
    effects: list[float],
) -> None:
    found = bounds(effects, analyses=8, cells=1)
    if found.low <= MARGIN <= found.high:
        assert decide_cell(found, MARGIN) == "undecided"


@given(EFFECTS)
def test_more_looks_and_more_cells_make_it_no_bolder(effects: list[float]) -> None:
    few = bounds(effects, analyses=1, cells=1)
    many = bounds(effects, analyses=8, cells=5)
    assert many.low <= few.low
    assert many.high >= few.high


def test_a_p_value_is_of_the_launches_or_of_their_means_in_pairs() -> None:
    """Launches that alternate say more in pairs; each kind has its share of the error."""
    alternating = [0.04 + 0.02 * (-1) ** n + 0.001 * math.sin(n) for n in range(40)]
    share = share_alone(len(alternating))
    for effects in (alternating, sorted(alternating)):
        alone, paired = (
            stats.ttest_1samp(each, MARGIN, alternative="greater").pvalue
            for each in (effects, batch_means(effects))
        )
        expected = min(1.0, 3 * min(alone / share, paired / (1 - share)))
        assert p_value(effects, margin=MARGIN, analyses=3) == pytest.approx(expected)


def test_a_spread_of_nothing_is_floored() -> None:
    assert bounds([0.01] * 4, analyses=3, cells=1).spread == pytest.approx(0.0002)


def test_the_nearer_the_margin_the_more_launches_are_projected() -> None:
    near = bounds([0.028, 0.030, 0.027, 0.029], analyses=8, cells=1)
    far = bounds([0.000, 0.002, -0.001, 0.001], analyses=8, cells=1)
    near_count = projected_launches(near, MARGIN, analyses=8)
    far_count = projected_launches(far, MARGIN, analyses=8)
    assert near_count is not None
    assert far_count is not None
    assert near_count > far_count
