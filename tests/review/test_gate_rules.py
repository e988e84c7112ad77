from __future__ import annotations

from tests.support import report_parts as parts
from tunegate.config import Config, GateConfig, ModelConfig, ObjectiveConfig
from tunegate.review.gate_rules import GateRules, with_configured


def test_the_objective_of_a_model_is_that_of_its_entry() -> None:
    asked = ObjectiveConfig(ms=5.0)
    config = Config(models=(ModelConfig(path="a.onnx", objective=asked), ModelConfig(path="*")))
    changes = parts.changes(parts.change("a.onnx"), parts.change("b.onnx"))
    found = with_configured(GateRules(gate=GateConfig()), config, changes)
    assert found.policies.objectives == {"a.onnx": asked}
