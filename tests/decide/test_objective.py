from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tunegate.decide.objective import decide_objective, inferences_needed, lower_share, upper_share

COUNTS = st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS)
def test_the_bounds_are_the_exact_ones_of_the_binomial(counts: tuple[int, int]) -> None:
    over, total = counts
    low, high = lower_share(over, total), upper_share(over, total)
    assert low <= over / total <= high
    if over < total:
        assert stats.binom.cdf(over, total, high) == pytest.approx(0.05, abs=1e-6)
    if over:
        assert stats.binom.sf(over - 1, total, low) == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize(
    ("over", "total", "decision"),
    [(0, 299, "pass"), (0, 298, "undecided"), (2, 100, "undecided"), (20, 300, "fail")],
)
def test_ninety_nine_percent(over: int, total: int, decision: str) -> None:
    assert decide_objective(over, total, 99.0) == decision


@pytest.mark.parametrize(
    ("percentile", "needed"), [(50.0, 5), (90.0, 29), (99.0, 299), (99.9, 2995)]
)
def test_the_fewest_inferences_that_can_pass(percentile: float, needed: int) -> None:
    assert inferences_needed(percentile) == needed
    assert decide_objective(0, needed, percentile) == "pass"
    assert decide_objective(0, needed - 1, percentile) == "undecided"
