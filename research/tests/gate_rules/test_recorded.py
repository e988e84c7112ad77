from __future__ import annotations

import numpy as np
import pytest

from research.gate_rules.recorded import RecordedSeries
from research.tests.gate_rules.launch_series import make_series


def test_the_effect_of_a_launch_is_that_of_the_gate() -> None:
    times = np.ones((2, 12, 2, 5))
    times[1, :, 1] = 1.1
    series = RecordedSeries("two", times, 1.0)
    np.testing.assert_allclose(series.effects, [0.0, np.log(1.1)])


def test_a_slowdown_is_put_into_the_second_arm_only() -> None:
    series = make_series(10)
    np.testing.assert_array_equal(series.base(2, 3), series.times_ms[2:5, :, 0])
    np.testing.assert_allclose(series.head(2, 3, 0.1), series.times_ms[2:5, :, 1] * 1.1)
    assert series.base(2, 3).shape == (3, 12, 5)
    assert len(series) == pytest.approx(10)
