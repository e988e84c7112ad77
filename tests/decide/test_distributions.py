from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.measurements import Histogram
from tunegate.decide.distributions import (
    beta_quantile,
    binomial_at_most,
    normal_probability,
    t_probability,
    t_quantile,
)
from tunegate.decide.histogram import histogram, merged_histogram, quantile_ms, slower_than, total

probabilities = st.floats(0.001, 0.999)


@given(st.integers(1, 200), probabilities)
def test_the_quantile_of_t_undoes_its_probability(freedom: int, probability: float) -> None:
    found = t_probability(freedom, t_quantile(freedom, probability))
    assert found == pytest.approx(probability, rel=1e-6)


def test_values_are_those_of_printed_tables() -> None:
    assert t_quantile(1, 0.975) == pytest.approx(12.706, abs=0.001)
    assert t_quantile(10, 0.95) == pytest.approx(1.812, abs=0.001)
    assert t_probability(10, 1.812) == pytest.approx(0.95, abs=0.001)
    assert normal_probability(1.96) == pytest.approx(0.975, abs=0.0001)
    assert normal_probability(0.0) == 0.5


@given(st.integers(0, 20), st.integers(1, 20), probabilities)
def test_at_most_so_many_is_the_sum_of_the_chances(
    count: int, total: int, probability: float
) -> None:
    chances = (
        math.comb(total, k) * probability**k * (1 - probability) ** (total - k)
        for k in range(min(count, total) + 1)
    )
    assert binomial_at_most(min(count, total), total, probability) == pytest.approx(sum(chances))


@given(st.integers(0, 9), st.integers(10, 30), probabilities)
def test_the_beta_quantile_bounds_a_share_as_clopper_and_pearson_do(
    over: int, total: int, error: float
) -> None:
    share = beta_quantile(over + 1, total - over, 1 - error)
    assert binomial_at_most(over, total, share) == pytest.approx(error, rel=1e-6)


TIMES = st.lists(st.floats(1e-3, 1e4), min_size=1, max_size=200)


@given(TIMES, st.floats(0.01, 1.0))
def test_a_quantile_is_right_to_two_percent_and_never_too_small(
    times: list[float], share: float
) -> None:
    exact = float(np.quantile(times, share, method="inverted_cdf"))
    assert exact * 0.999999 <= quantile_ms(histogram(times), share) <= exact * 1.0201


@given(TIMES, TIMES)
def test_two_together_are_one_of_both(first: list[float], second: list[float]) -> None:
    assert merged_histogram([histogram(first), histogram(second)]) == histogram([*first, *second])


@given(TIMES, st.floats(1e-3, 1e4))
def test_what_took_longer_is_counted_in_full(times: list[float], limit_ms: float) -> None:
    found = slower_than(histogram(times), limit_ms)
    assert sum(time > limit_ms for time in times) <= found
    assert found <= sum(time > limit_ms / 1.0101 for time in times)


def test_nothing_is_nothing() -> None:
    empty = Histogram(first=0, counts=())
    assert (histogram([]), merged_histogram([]), total(empty)) == (empty, empty, 0)
    with pytest.raises(ValueError, match="empty"):
        quantile_ms(empty, 0.5)
