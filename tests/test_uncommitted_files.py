from __future__ import annotations

from tunegate.config import Config, ModelConfig
from tunegate.project import uncommitted_config, uncommitted_models


def test_a_configuration_that_is_not_committed_is_read_and_told() -> None:
    told = ("tunegate.yaml is read as it is here, with what is not committed",)
    assert uncommitted_config("tunegate.yaml", ["a", "tunegate.yaml"]) == told
    assert uncommitted_config("tunegate.yaml", ["a"]) == ()
    assert uncommitted_config(None, ["tunegate.yaml"]) == ()  # one outside of the repository


def test_data_beside_a_model_is_a_change_of_the_model() -> None:
    config = Config(models=(ModelConfig(path="models/*"),))
    (told,) = uncommitted_models(config, ["models/m.onnx.data", "models/a.txt", "b.onnx"])
    assert told.startswith("models/m.onnx is not committed as it is here")
