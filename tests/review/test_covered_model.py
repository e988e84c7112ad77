from __future__ import annotations

import pytest

from tunegate.artifacts.changes import ModelInput
from tunegate.config import Accuracy, AccuracyConfig, Config, ModelConfig, TargetConfig
from tunegate.review.covered_model import Asked, CoveredModel, asked_of
from tunegate.review.globs import matches

WIDE, TINY = {"x": (1, 512)}, {"x": (1, 2)}


def asked(
    old: ModelConfig, new: ModelConfig | None, inputs: tuple[ModelInput, ...] | None = None
) -> Asked:
    targets = (TargetConfig(name="cpu"), TargetConfig(name="gpu"))
    config = Config(models=(old,), targets=targets)
    return asked_of(CoveredModel("a[1]/m*.onnx", old, new), config, config, lambda _: inputs)


def entry(**fields: object) -> ModelConfig:
    return ModelConfig(path="**", **fields)  # type: ignore[arg-type]  # a builder


@pytest.mark.parametrize("inputs", [None, (ModelInput("x", (1, None)),)])
def test_tiny_shapes_of_the_head_have_no_effect(inputs: tuple[ModelInput, ...] | None) -> None:
    found = asked(entry(inputs=WIDE), entry(inputs=TINY), inputs)
    assert found.entry.inputs == WIDE
    (told,) = found.changes
    assert (told.key, told.old, told.new) == ("models[].inputs", "{x: [1, 512]}", "{x: [1, 2]}")
    assert (told.effect, told.counts) == ("changed", "once merged")


def test_shapes_that_fit_no_more_are_the_head_s_and_that_is_told() -> None:
    found = asked(entry(inputs=WIDE), entry(inputs=TINY), (ModelInput("x", (1, 2)),))
    assert found.entry.inputs == TINY
    assert [(told.effect, told.counts) for told in found.changes] == [("changed", "now")]


def test_without_an_entry_of_the_head_everything_is_the_base_s() -> None:
    old = entry(inputs=WIDE, targets=("gpu",))
    found = asked(old, None)
    assert (found.entry.inputs, found.entry.targets) == (WIDE, ("gpu",))
    assert [told.key for told in found.changes] == ["models[].path"]


def test_targets_of_both_count_and_a_new_one_is_stricter() -> None:
    found = asked(entry(targets=("cpu",)), entry(targets=("gpu", "cpu")))
    assert found.entry.targets == ("cpu", "gpu")
    assert [(told.key, told.effect) for told in found.changes] == [
        ("models[].targets", "tightened")
    ]
    swapped = asked(entry(targets=("cpu",)), entry(targets=("gpu",)))
    assert swapped.entry.targets == ("cpu", "gpu")
    assert [told.effect for told in swapped.changes] == ["loosened"]


def test_the_entry_is_for_this_very_path() -> None:
    path = asked(entry(), entry()).entry.path
    assert matches(path, "a[1]/m*.onnx")
    assert not matches(path, "a1/mm.onnx")


LOOSE, TIGHT = AccuracyConfig(max_error=5.0), AccuracyConfig(max_error=1.0)


@pytest.mark.parametrize(
    ("old", "new", "counting", "effect"),
    [
        ("same", LOOSE, "same", "loosened"),
        (LOOSE, "same", "same", "tightened"),
        (TIGHT, LOOSE, TIGHT, "loosened"),
        (LOOSE, TIGHT, TIGHT, "tightened"),
    ],
)
def test_the_stricter_budget_of_accuracy_counts(
    old: Accuracy, new: Accuracy, counting: Accuracy, effect: str
) -> None:
    found = asked(entry(accuracy=old), entry(accuracy=new))
    assert found.entry.accuracy == counting
    assert [told.effect for told in found.changes] == [effect]
