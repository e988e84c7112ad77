"""What is measured again alone, and what that says of the others."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.tune.parallel_measurement import checked, correction, error, outliers

shares = st.lists(st.floats(0.001, 1), max_size=64)


def test_a_value_far_from_the_others_is_an_outlier() -> None:
    assert outliers([1.0, 1.1, 0.9, 1.05, 0.95, 9.0]) == (5,)


def test_each_side_of_the_median_has_its_own_spread() -> None:
    """Far above is usual here, and the same distance below is not."""
    assert outliers([10.0, 10.1, 9.9, 10.0, 14.0, 13.0, 15.0, 12.0, 9.8, 5.0]) == (9,)


def test_equal_values_have_no_outlier() -> None:
    assert outliers([2.0] * 9) == ()


def test_a_fifth_is_checked_rounded_up() -> None:
    assert len(checked([1.0] * 16, random.Random(1))) == 4


def test_outliers_are_checked_even_where_they_are_more_than_a_fifth() -> None:
    odd = [1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 9.0, 9.5, 8.0]
    assert set(outliers(odd)) <= set(checked(odd, random.Random(1)))


def test_of_two_good_results_nothing_is_checked() -> None:
    assert checked([1.0, 2.0], random.Random(1)) == ()


@given(shares, st.integers())
def test_what_is_checked_is_a_part_of_the_batch(values: list[float], seed: int) -> None:
    found = checked(values, random.Random(seed))
    assert len(set(found)) == len(found)
    assert all(0 <= place < len(values) for place in found)
    assert len(found) >= len(values) / 5 or len(values) < 3


def test_the_error_is_the_mean_of_the_relative_differences() -> None:
    assert error({0: 10.0, 3: 20.0}, {0: 9.0, 3: 22.0}) == pytest.approx(0.1)


def test_one_measurement_alone_says_nothing_of_the_others() -> None:
    assert error({0: 10.0}, {0: 5.0}) is None


def test_a_small_error_corrects_the_others_and_a_large_one_does_not() -> None:
    assert correction(0.1) == pytest.approx(0.9)
    assert correction(0.25) == 1.0
    assert correction(None) == 1.0
