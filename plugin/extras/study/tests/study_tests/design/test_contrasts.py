from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate_study.design.contrasts import Sample, contrast, holm_p_values, sample_of

P_VALUES = st.lists(st.floats(0, 1), max_size=20)


def test_one_launch_tells_nothing_of_its_scatter() -> None:
    assert sample_of([0.1]) is None
    found = sample_of([0.1, 0.3])
    assert found is not None
    assert (found.mean, found.variance) == pytest.approx((0.2, 0.01))


def test_equal_launches_are_not_exact() -> None:
    found = sample_of([0.5] * 5)
    assert found is not None
    assert found.variance > 0


def test_two_cells_of_equal_scatter_have_the_degrees_of_freedom_of_both() -> None:
    found = contrast([1, -1], [Sample(0.3, 1e-4, 5), Sample(0.1, 1e-4, 5)])
    assert (found.center, found.error) == pytest.approx((0.2, math.sqrt(2e-4)))
    assert found.freedom == 8


def test_an_interval_is_wider_where_more_are_looked_at() -> None:
    found = contrast([1, -1], [Sample(0.3, 1e-4, 5), Sample(0.1, 1e-4, 5)])
    alone, among = found.percent(), found.percent(20)
    assert alone.center == among.center == pytest.approx(100 * math.expm1(0.2))
    assert among.low < alone.low < alone.high < among.high


def test_an_interval_misses_as_seldom_as_it_says() -> None:
    """The truth is 0; 95% intervals of 2,000 differences of cells with other scatters each."""
    chance, missed = random.Random(3), 0
    for _ in range(2000):
        drawn = [[chance.gauss(0, s) for _ in range(5)] for s in (0.01, 0.03)]
        samples = [each for values in drawn if (each := sample_of(values)) is not None]
        interval = contrast([1, -1], samples).percent()
        missed += not interval.low <= 0 <= interval.high
    assert 0.03 < missed / 2000 < 0.07


@given(P_VALUES)
def test_a_corrected_p_value_is_no_smaller_and_keeps_the_order(p_values: list[float]) -> None:
    found = holm_p_values(p_values)
    assert all(0 <= raw <= each <= 1 for raw, each in zip(p_values, found, strict=True))
    order = sorted(range(len(found)), key=lambda place: p_values[place])
    assert [found[place] for place in order] == sorted(found)


def test_holms_own_example() -> None:
    assert holm_p_values([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
