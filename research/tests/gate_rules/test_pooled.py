from __future__ import annotations

import pytest

from research.gate_rules.pooled import pooled_alarms, pooled_coverage, pooled_verdicts
from research.gate_rules.power import Alarms, Coverage, Verdicts


def test_a_gate_counts_the_same_whatever_series_it_is_of() -> None:
    one = Verdicts(margin_percent=3, slowdown=0.0, outcomes=("pass",) * 3, seconds=(1.0, 2.0, 3.0))
    other = Verdicts(margin_percent=3, slowdown=0.0, outcomes=("fail",), seconds=(100.0,))
    both = pooled_verdicts([one, other])
    assert both.share("fail") == 0.25
    assert both.median_seconds == 2.5
    assert both.p95_seconds > 80


def test_a_series_that_ended_before_any_gate_adds_nothing() -> None:
    none = Verdicts(margin_percent=3, slowdown=0.0, outcomes=(), seconds=())
    one = Verdicts(margin_percent=3, slowdown=0.0, outcomes=("pass",), seconds=(1.0,))
    assert pooled_verdicts([none, one]) == one


def test_shares_of_windows_are_averaged_over_series() -> None:
    assert pooled_alarms([Alarms("x", (0.0, 1.0)), Alarms("x", (0.5, 1.0))]) == Alarms(
        "x", (0.25, 1.0)
    )
    both = pooled_coverage([Coverage(4, 0.9, 1.0), Coverage(4, 1.0, 1.0)])
    assert both.launches == 4
    assert both.low == pytest.approx(0.95)
    assert both.high == 1.0
