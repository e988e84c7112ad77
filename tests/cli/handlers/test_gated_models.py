from __future__ import annotations

from tunegate.artifacts.verdicts import WarmedModel
from tunegate.cli.handlers.doctor_checks import gated_models, left_to_do, with_tasks
from tunegate.config import Config, ModelConfig, ProfileConfig, TargetConfig
from tunegate.models.finder import FoundModel

CONFIG = Config(
    models=(
        ModelConfig(path="a.onnx", profiles={"one": ProfileConfig(), "two": ProfileConfig()}),
        ModelConfig(path="*.onnx"),
    ),
    targets=(TargetConfig(name="cpu"),),
)


def test_each_profile_of_a_model_is_one_by_the_entry_that_gates_it() -> None:
    found = gated_models(CONFIG, [FoundModel(path="a.onnx"), FoundModel(path="b.onnx")], ["b.onnx"])
    assert [(each.model, each.entry) for each in found] == [
        ("a.onnx@one", "a.onnx"),
        ("a.onnx@two", "a.onnx"),
        ("b.onnx", "*.onnx"),
    ]
    assert [each.state for each in found] == ["committed"] * 2 + ["changed since the commit"]


def test_what_is_left_to_do_is_counted() -> None:
    models = gated_models(CONFIG, [FoundModel(path="b.onnx", is_committed=False)], [])
    known = WarmedModel(model="b.onnx", target="cpu", tasks=3, known_before=2, known=2)
    assert list(left_to_do(with_tasks(models, [known]))) == [
        "1 model not committed as here: tunegate sees commits alone",
        "1 task is untuned: tunegate warm tunes what matters",
    ]
    assert list(left_to_do(gated_models(CONFIG, [FoundModel(path="b.onnx")], []))) == []
