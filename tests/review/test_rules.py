import msgspec
import pytest

from tests.support import report_parts as parts
from tunegate.config import Config, GateConfig, ModelConfig, ObjectiveConfig
from tunegate.config_key import Strictness, later, rarer, smaller
from tunegate.review.gate_rules import GateRules, with_configured
from tunegate.review.rules import GATE, OBJECTIVE


@pytest.mark.parametrize(
    ("weight", "loosest_first"),
    [
        (smaller, [None, 60.0, 3.0, 0.0]),
        (rarer, [0.0, 0.2, 0.05]),
        (later("warn", "fail"), ["warn", "fail"]),
        (GATE.ordered["waivers_from"], ["head", "base"]),
        (GATE.ordered["policy_changes"], ["report", "fail"]),
        (GATE.ordered["inconclusive"], ["warn", "fail"]),
        (GATE.ordered["waiver_trailers"], [True, False]),
        (OBJECTIVE.ordered["ms"], [10.0, 5.0]),
        (OBJECTIVE.ordered["percentile"], [50.0, 99.0]),
    ],
)
def test_values_are_ordered_from_the_loosest_to_the_strictest(
    weight: Strictness, loosest_first: list[object]
) -> None:
    weights = [weight(value) for value in loosest_first]
    assert weights == sorted(set(weights))


def test_every_margin_of_the_gate_has_an_order() -> None:
    margins = {f.name for f in msgspec.structs.fields(GateConfig) if "margin" in f.name}
    assert margins <= set(GATE.ordered)


def test_the_objective_of_a_model_is_that_of_its_entry() -> None:
    asked = ObjectiveConfig(ms=5.0)
    config = Config(models=(ModelConfig(path="a.onnx", objective=asked), ModelConfig(path="*")))
    changes = parts.changes(parts.change("a.onnx"), parts.change("b.onnx"))
    found = with_configured(GateRules(gate=GateConfig()), config, changes)
    assert (found.policies.objectives, found.targets) == ({"a.onnx": asked}, config.targets)
