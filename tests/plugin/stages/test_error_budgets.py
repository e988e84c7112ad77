from __future__ import annotations

import msgspec
import pytest

from tunegate.artifacts.builds import Build, Cell, unbuilt
from tunegate.artifacts.candidates import CandidateBuild
from tunegate.artifacts.error_estimates import SampledErrors
from tunegate.config import Accuracy, AccuracyConfig, Config, InputConfig, ModelConfig, ValuesConfig
from tunegate.stages.error_budgets import held_to_budget, is_tried, samples_for

CELL = Cell(model="m.onnx", target="cpu")
PLAIN = CandidateBuild(runtime="any", title="Any")
INT8 = CandidateBuild(
    runtime="any", title="Any (int8)", variant="int8", settings={"precision": "int8"}
)
BUDGET = AccuracyConfig(max_error=1.0)


def config(accuracy: Accuracy, **inputs: InputConfig) -> Config:
    return Config(models=(ModelConfig(path="*.onnx", accuracy=accuracy, inputs=inputs),))


def held(error: float | None) -> Build:
    sampled = None if error is None else SampledErrors(relative=(error,) * 74)
    build = msgspec.structs.replace(unbuilt(""), error=None, directory="b", sampled=sampled)
    return held_to_budget(build, config(BUDGET), "m.onnx", INT8)


def test_other_numbers_are_tried_only_under_a_budget() -> None:
    both = {"cpu": (PLAIN, INT8)}
    tried = [is_tried(config("same"), CELL, each, both) for each in (PLAIN, INT8)]
    assert tried == [True, False]
    assert is_tried(config(BUDGET), CELL, INT8, both)
    assert [samples_for(config(BUDGET), "m.onnx", each) for each in (PLAIN, INT8)] == [0, 74]


def test_what_is_calibrated_is_tried_where_a_budget_and_values_are_given() -> None:
    static = msgspec.structs.replace(INT8, settings={**INT8.settings, "quantization": "static"})
    both = {"cpu": (PLAIN, static)}
    values = InputConfig(values=ValuesConfig(low=0, high=1))
    assert is_tried(config(BUDGET, x=values), CELL, static, both)
    assert not is_tried(config("same", x=values), CELL, static, both)
    assert not is_tried(config(BUDGET, x=InputConfig(shape=(1, 2))), CELL, static, both)
    assert not is_tried(config("same"), CELL, static, {"cpu": (static,)})


def test_a_target_without_float32_is_checked_and_not_left_out() -> None:
    assert is_tried(config("same"), CELL, INT8, {"cpu": (INT8,)})
    assert samples_for(config("same"), "m.onnx", INT8) == 0


def test_a_build_inside_its_budget_has_its_estimate_and_no_samples() -> None:
    build = held(0.009)
    assert (build.error, build.sampled) == (None, None)
    assert [each.high for each in build.error_estimate] == pytest.approx([0.9])
    assert [each.limit for each in build.error_estimate] == [1.0]


def test_float32_of_a_model_with_a_budget_is_marked_so_that_the_report_can_say_it() -> None:
    build = msgspec.structs.replace(unbuilt(""), error=None, directory="b")
    assert held_to_budget(build, config(BUDGET), "m.onnx", PLAIN).has_budget
    assert not held_to_budget(build, config("same"), "m.onnx", PLAIN).has_budget


def test_a_build_outside_its_budget_is_refused_with_its_interval() -> None:
    assert held(0.02).error == (
        "m.onnx: Any (int8) has a max-error of 2%, interval 2% to 2% on 74 inputs; "
        "the budget is 1%."
    )


def test_a_build_that_says_nothing_of_its_error_does_not_ship() -> None:
    assert held(None).error == "m.onnx: Any (int8) says nothing of its error."
