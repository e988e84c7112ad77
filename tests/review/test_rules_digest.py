from __future__ import annotations

import datetime

from tests.support.waivers import make_waiver
from tunegate.config import GateConfig, ObjectiveConfig
from tunegate.review.gate_rules import GateRules, Policies, rules_digest

GATE = GateConfig()
USUAL = GateRules(gate=GATE)


def test_the_day_does_not_count() -> None:
    tomorrow = Policies(today=datetime.date(2026, 3, 1))
    assert rules_digest(GateRules(gate=GATE, policies=tomorrow)) == rules_digest(USUAL)


def test_every_rule_counts() -> None:
    others = (
        GateRules(gate=GateConfig(margin_percent=4.0)),
        GateRules(gate=GateConfig(absolute_floor_us=1.0)),
        *(
            GateRules(gate=GATE, policies=policies)
            for policies in (
                Policies(metric_margin=1.0),
                Policies(objectives={"m.onnx": ObjectiveConfig(ms=1.0)}),
                Policies(waivers=(make_waiver(),)),
            )
        ),
    )
    digests = {rules_digest(rules) for rules in others}
    assert len(digests) == len(others)
    assert rules_digest(USUAL) not in digests
