from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.measurements import Histogram
from tunegate.decide.inside_launch import (
    histogram,
    merged_histogram,
    quantile_ms,
    slower_than,
    total,
)

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
