from __future__ import annotations

import pytest

from tunegate.config import ObjectiveConfig
from tunegate.review.rules import written


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "not set"),
        (3.0, "3"),
        (0.5, "0.5"),
        (True, "true"),
        ("warn", "warn"),
        ((1, 128), "[1, 128]"),
        ({"x": (1, 2)}, "{x: [1, 2]}"),
        (ObjectiveConfig(ms=20), "{ms: 20, percentile: 99}"),
    ],
)
def test_a_value_is_written_as_in_the_file(value: object, text: str) -> None:
    assert written(value) == text
