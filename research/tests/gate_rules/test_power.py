from __future__ import annotations

import pytest

from research.gate_rules.power import PEERS, SLOWDOWNS, alarms, interval_coverage, verdicts
from research.tests.gate_rules.launch_series import make_series

SERIES = make_series(400, spread=0.004)


def test_our_gate_is_right_on_both_sides_of_the_margin() -> None:
    same = verdicts(SERIES, 0.0, 3.0)
    slower = verdicts(SERIES, 0.05, 3.0)
    assert same.share("pass") == 1.0
    assert same.share("fail") == same.share("inconclusive") == same.share("invalid-env") == 0.0
    assert slower.share("fail") == 1.0
    assert same.median_seconds == pytest.approx(8.0)  # four launches of two seconds


def test_at_the_margin_itself_it_hardly_ever_fails_or_passes() -> None:
    found = verdicts(SERIES, 0.03, 3.0)
    assert found.share("fail") <= 0.05
    assert found.share("pass") <= 0.10


def test_a_rule_has_a_share_for_every_slowdown_and_they_grow() -> None:
    ratio = alarms(SERIES, PEERS[1])
    assert len(ratio.shares) == len(SLOWDOWNS)
    assert ratio.shares[0] == 0.0
    assert ratio.shares[-1] > 0.2


def test_bounds_of_normal_launches_cover_as_often_as_they_say() -> None:
    found = interval_coverage(make_series(4000, spread=0.004, inferences=1), 6)
    assert 0.93 <= found.low <= 0.97
    assert 0.93 <= found.high <= 0.97
