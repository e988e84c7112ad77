from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.review.input_shapes import computed_size

SIZES = {"past": 16, "seq": 8}


@pytest.mark.parametrize(
    ("symbol", "size"),
    [
        ("past + seq", 24),
        ("past+1", 17),
        ("2*seq", 16),
        ("((past - 1)//2) + 1", 8),
        ("seq - 8", 0),
        ("seq", None),
        ("0", None),
        ("past + other", None),
        ("seq - past", None),
        ("past // 0", None),
        ("past ** seq", None),
        ("True + seq", None),
        ("max(past, seq)", None),
        ("batch-size", None),
        ("(" * 150 + "seq" + ")" * 150, None),
        ("+".join(["seq"] * 200), None),
        ("unk__12", None),
        ("seq +", None),
        ("", None),
    ],
)
def test_a_sum_of_known_sizes_is_a_size(symbol: str, size: int | None) -> None:
    assert computed_size(symbol, SIZES) == size


@given(st.text(max_size=60))
def test_no_name_that_an_exporter_may_write_is_a_fault(symbol: str) -> None:
    size = computed_size(symbol, SIZES)
    assert size is None or size >= 0
