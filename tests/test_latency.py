from __future__ import annotations

import pytest

from tunegate.wording import compared_times, milliseconds


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0.000 µs"),
        (0.0214, "21.40 µs"),
        (0.5, "0.5000 ms"),
        (0.9999999, "1.000 ms"),
        (4.812, "4.812 ms"),
        (9.99999, "10.00 ms"),
        (48.123, "48.12 ms"),
        (4812.3, "4812 ms"),
        (61_000, "61.00 s"),
    ],
)
def test_a_time_keeps_four_digits_in_a_readable_unit(value: float | None, text: str) -> None:
    assert milliseconds(value) == text


def test_a_sentence_has_fewer_digits() -> None:
    assert milliseconds(3.0294, 3) == "3.03 ms"
    assert milliseconds(0.00041, 3) == "0.410 µs"


def test_who_is_faster_is_said_in_percent_of_the_other() -> None:
    assert compared_times(0.5, 1.0) == "50% faster"
    assert compared_times(0.75, 1.0, "TVM") == "25% faster than TVM"
    assert compared_times(1.01, 1.0) == "1% slower (not clearly)"
    assert compared_times(1.01, 1.0, "TVM") == "1% slower than TVM (not clearly)"
