from __future__ import annotations

import math

import pytest

from tunegate.decide.decision import Bounds, percent_interval


def test_bounds_are_told_in_percent_and_what_is_endless_stays_a_number() -> None:
    found = percent_interval(Bounds(low=0.0, center=math.log(1.1), high=math.inf, spread=0.1))
    assert found.low == 0.0
    assert found.center == pytest.approx(10.0)
    assert math.isfinite(found.high)
