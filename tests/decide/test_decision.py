import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support.present import present
from tunegate.artifacts.histogram import Histogram, histogram, merged_histogram
from tunegate.decide import distributions
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
    alternating = [0.031 + 0.02 * (-1) ** n + 0.005 * math.sin(n) for n in range(40)]
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
    far_count = present(projected_launches(far, MARGIN, analyses=8))
    assert present(near_count) > far_count


probabilities = st.floats(0.001, 0.999)


@given(st.integers(1, 200), probabilities)
def test_the_quantile_of_t_undoes_its_probability(freedom: int, probability: float) -> None:
    found = distributions.t_probability(freedom, distributions.t_quantile(freedom, probability))
    assert found == pytest.approx(probability, rel=1e-6)


def test_values_are_those_of_printed_tables() -> None:
    assert distributions.t_quantile(1, 0.975) == pytest.approx(12.706, abs=0.001)
    assert distributions.t_quantile(10, 0.95) == pytest.approx(1.812, abs=0.001)
    assert distributions.t_probability(10, 1.812) == pytest.approx(0.95, abs=0.001)
    assert distributions.normal_probability(1.96) == pytest.approx(0.975, abs=0.0001)
    assert distributions.normal_probability(0.0) == 0.5


@given(st.integers(0, 20), st.integers(1, 20), probabilities)
def test_at_most_so_many_sums_the_chances(count: int, total: int, probability: float) -> None:
    chances = (
        math.comb(total, k) * probability**k * (1 - probability) ** (total - k)
        for k in range(min(count, total) + 1)
    )
    assert distributions.binomial_at_most(min(count, total), total, probability) == pytest.approx(
        sum(chances)
    )


@given(st.integers(0, 9), st.integers(10, 30), probabilities)
def test_the_beta_quantile_bounds_a_share_as_clopper_and_pearson_do(
    over: int, total: int, error: float
) -> None:
    share = distributions.beta_quantile(over + 1, total - over, 1 - error)
    assert distributions.binomial_at_most(over, total, share) == pytest.approx(error, rel=1e-6)


TIMES = st.lists(st.floats(1e-3, 1e4), min_size=1, max_size=200)


@given(TIMES, st.floats(0.01, 1.0))
def test_a_quantile_is_right_to_2_percent_or_too_large(times: list[float], share: float) -> None:
    exact = float(np.quantile(times, share, method="inverted_cdf"))
    assert exact * 0.999999 <= histogram(times).quantile_ms(share) <= exact * 1.0201


@given(TIMES, TIMES)
def test_two_together_are_one_of_both(first: list[float], second: list[float]) -> None:
    assert merged_histogram([histogram(first), histogram(second)]) == histogram([*first, *second])


@given(TIMES, st.floats(1e-3, 1e4))
def test_what_took_longer_is_counted_in_full(times: list[float], limit_ms: float) -> None:
    found = histogram(times).slower_than(limit_ms)
    assert sum(time > limit_ms for time in times) <= found
    assert found <= sum(time > limit_ms / 1.0101 for time in times)


def test_nothing_is_nothing() -> None:
    empty = Histogram(first=0, counts=())
    assert (histogram([]), merged_histogram([]), empty.total) == (empty, empty, 0)
    with pytest.raises(ValueError, match="empty"):
        empty.quantile_ms(0.5)
