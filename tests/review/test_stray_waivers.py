from __future__ import annotations

import pytest

from tests.support.waivers import make_waiver
from tunegate.config import Config, ModelConfig, ProfileConfig, TargetConfig
from tunegate.review.gate_rules import stray_waivers

CONFIG = Config(
    models=(
        ModelConfig(path="models/gpu.onnx", targets=("gpu",)),
        ModelConfig(path="models/*.onnx", profiles={"long": ProfileConfig()}),
    ),
    targets=(TargetConfig(name="cpu"), TargetConfig(name="gpu")),
)
MODELS = ("models/m.onnx@long", "models/gpu.onnx")


@pytest.mark.parametrize(
    ("model", "target", "said"),
    [
        ("models/n.onnx", "cpu", "no configured model has this name. Did you mean models/m.onnx?"),
        ("models/m.onnx@lnog", "cpu", "Did you mean models/m.onnx@long?"),
        ("zzz", "cpu", "Known: models/gpu.onnx, models/m.onnx, models/m.onnx@long."),
        ("models/m.onnx", "gpus", "the model has no target gpus. Did you mean gpu?"),
        ("models/gpu.onnx", "zzz", "the model has no target zzz. Known: gpu."),
    ],
)
def test_a_waiver_of_an_unknown_name_is_told_with_what_was_meant(
    model: str, target: str, said: str
) -> None:
    (line,) = stray_waivers([make_waiver(model=model, target=target)] * 2, CONFIG, MODELS)
    assert line.startswith(f"the waiver of {model} on {target} waives nothing: ")
    assert line.endswith(said)


@pytest.mark.parametrize(
    "model",
    ["models/m.onnx", "models/m.onnx@long", "models/m.onnx@long (onnxruntime of uv.lock)"],
)
def test_a_model_its_profile_and_its_upgrade_can_be_waived(model: str) -> None:
    assert [*stray_waivers([make_waiver(model=model)], CONFIG, MODELS)] == []
