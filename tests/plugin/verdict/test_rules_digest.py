from __future__ import annotations

import datetime

from tests.support.waivers import make_waiver
from tunegate.config import GateConfig, ObjectiveConfig
from tunegate.verdict.checks import NO_POLICIES, Policies
from tunegate.verdict.rules_digest import rules_digest

GATE = GateConfig()


def test_the_day_does_not_count() -> None:
    tomorrow = Policies(today=datetime.date(2026, 3, 1))
    assert rules_digest(GATE, tomorrow) == rules_digest(GATE, NO_POLICIES)


def test_every_rule_counts() -> None:
    others = (
        (GateConfig(margin_percent=4.0), NO_POLICIES),
        (GateConfig(absolute_floor_us=1.0), NO_POLICIES),
        (GATE, Policies(metric_margin=1.0)),
        (GATE, Policies(objectives={"m.onnx": ObjectiveConfig(ms=1.0)})),
        (GATE, Policies(waivers=(make_waiver(),))),
    )
    digests = {rules_digest(gate, policies) for gate, policies in others}
    assert len(digests) == len(others)
    assert rules_digest(GATE, NO_POLICIES) not in digests
