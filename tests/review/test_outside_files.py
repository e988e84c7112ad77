from __future__ import annotations

from tunegate.config import Config, InputConfig, ModelConfig, ProfileConfig, ValuesConfig
from tunegate.review.base_rules import newly_outside


def _config(*files: str) -> Config:
    inputs = {
        f"x{at}": InputConfig(values=ValuesConfig(file=file)) for at, file in enumerate(files)
    }
    return Config(models=(ModelConfig(path="m.onnx", inputs=inputs),))


def test_files_of_the_repository_may_be_named_by_anybody() -> None:
    assert newly_outside(_config(), _config("inputs/x.npy")) == ()


def test_a_file_on_the_runner_that_the_base_names_stays() -> None:
    assert newly_outside(_config("/data/x.npy"), _config("/data/x.npy")) == ()


def test_a_file_on_the_runner_that_only_the_head_names_is_told() -> None:
    (line,) = newly_outside(_config("/data/x.npy"), _config("/data/x.npy", "/etc/passwd"))
    assert line.startswith("models: m.onnx: inputs.x1.values: /etc/passwd lies outside")


def test_cases_and_profiles_are_looked_into() -> None:
    values = ValuesConfig(cases=("a.npy", "/data/b.npy"))
    profile = ProfileConfig(inputs={"x": InputConfig(values=values)})
    head = Config(models=(ModelConfig(path="m.onnx", profiles={"long": profile}),))
    (line,) = newly_outside(_config(), head)
    assert "profiles.long: inputs.x.values: /data/b.npy" in line


def test_the_tensors_of_a_sequence_are_files_like_others() -> None:
    values = ValuesConfig(sequence=("a.npy", "/data/b.npy"))
    head = Config(models=(ModelConfig(path="m.onnx", inputs={"x": InputConfig(values=values)}),))
    (line,) = newly_outside(_config(), head)
    assert "inputs.x.values: /data/b.npy lies outside" in line
