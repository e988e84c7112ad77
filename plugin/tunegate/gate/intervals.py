"""Bounds of logarithms as changes in percent."""

from __future__ import annotations

import math

from tunegate.artifacts.measurements import Interval
from tunegate.gate.decision import Bounds

_LARGEST = 10.0
"""The largest logarithm that is shown: what is beyond is endless for anybody."""


def percent_interval(found: Bounds) -> Interval:
    """The bounds and the center as the head shows them against the base."""
    return Interval(
        low=100 * math.expm1(found.low),
        center=100 * math.expm1(found.center),
        high=100 * math.expm1(min(found.high, _LARGEST)),
    )
