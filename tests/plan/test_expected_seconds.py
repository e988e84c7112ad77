from __future__ import annotations

from tests.support import report_parts as parts
from tests.support.tuning_tasks import make_task
from tunegate.config import GateConfig
from tunegate.plan.run_forecast import expected_seconds

GATE = GateConfig()


def test_a_model_without_a_base_is_not_compared() -> None:
    new = parts.change("m.onnx", kind="added", base=None)
    assert expected_seconds(new, [], "llvm", GATE) < expected_seconds(
        parts.change("m.onnx"), [], "llvm", GATE
    )


def test_tasks_of_other_models_cost_nothing() -> None:
    change = parts.change("other.onnx")
    assert expected_seconds(change, [make_task("a")], "llvm", GATE) == expected_seconds(
        change, [], "llvm", GATE
    )


def test_no_more_is_expected_than_the_gate_may_spend() -> None:
    change = parts.change("m.onnx")
    least = GateConfig(seconds=1.0, extend=False)
    assert expected_seconds(change, [], "llvm", least) < 12
