from __future__ import annotations

import pytest

from tunegate.config import Config, InputConfig, ModelConfig, ProfileConfig, ValuesConfig
from tunegate.errors import ConfigError
from tunegate.review.config_file import entry_problems, parse_config


def problems(entry: ModelConfig) -> list[str]:
    return [each.text for each in entry_problems(Config(models=(entry,)))]


def test_shapes_dims_profiles_and_values_are_read() -> None:
    text = """
        dims: {batch: 1}
        models:
          - path: m.onnx
            dims: {seq: 8}
            inputs:
              a: [1, 3]
              b: {shape: [1, 3], values: {low: 0, high: 9.5}}
              c: {values: {cases: [16000]}}
            profiles:
              long: {dims: {seq: 128}, inputs: {a: [4, 3]}}
              short: {}
    """
    config = parse_config(text, "x")
    assert config.dims == {"batch": 1}
    assert config.models == (
        ModelConfig(
            path="m.onnx",
            dims={"seq": 8},
            inputs={
                "a": (1, 3),
                "b": InputConfig(shape=(1, 3), values=ValuesConfig(low=0, high=9.5)),
                "c": InputConfig(values=ValuesConfig(cases=(16000,))),
            },
            profiles={
                "long": ProfileConfig(dims={"seq": 128}, inputs={"a": (4, 3)}),
                "short": ProfileConfig(),
            },
        ),
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "models: m: profiles: a profile has no name. Write one before its colon."),
        ("a b", 'models: m: profiles: the name "a b" may have letters, digits, dots,'),
        ("a.onnx", 'models: m: profiles: the name "a.onnx" looks like that of a file.'),
    ],
)
def test_a_profile_needs_a_name(name: str, said: str) -> None:
    (found,) = problems(ModelConfig(path="m", profiles={name: ProfileConfig()}))
    assert found.startswith(said)


def test_what_judges_may_have_a_model_without_a_profile_beside_its_profiles() -> None:
    entry = ModelConfig(path="m", profiles={"": ProfileConfig(), "a b": ProfileConfig()})
    (found,) = entry_problems(Config(models=(entry,)), is_merged=True)
    assert 'the name "a b"' in found.text


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (ValuesConfig(), "give low and high, or a file, or cases, or a sequence"),
        (
            ValuesConfig(low=0, high=1, file="x.npy"),
            "give low and high, or a file, or cases, or a sequence",
        ),
        (ValuesConfig(low=0), "high is missing beside 0"),
        (ValuesConfig(low=2, high=1), "low is 2, which is more than high, 1"),
    ],
)
def test_values_have_one_form(values: ValuesConfig, said: str) -> None:
    (found,) = problems(ModelConfig(path="m", inputs={"x": InputConfig(values=values)}))
    assert found == f"models: m: inputs.x.values: {said}."


def test_all_problems_are_said_at_once() -> None:
    text = "models: [{path: m, targets: [gpu], profiles: {'': {}}}, {path: n, targets: [tpu]}]"
    with pytest.raises(ConfigError) as raised:
        parse_config(text, "x")
    assert str(raised.value) == 'x: models: m: unknown target "gpu". Known: cpu.'
    assert [each.partition(": ")[2][:20] for each in raised.value.others] == [
        "models: m: profiles:",
        "models: n: unknown t",
    ]
    assert raised.value.about is not None
    assert raised.value.about.key == "models[0].targets"


@pytest.mark.parametrize(
    ("accuracy", "told"),
    [
        ("{metric-command: {run: 'python \"', at-most: 1}}", "is no command line"),
        ("{metric-command: {run: ' ', at-most: 1}}", "is empty. Write a program"),
        ("{metric-command: {run: python}}", "at-most"),
        ("{metric-command: {run: python, at-most: .nan}}", ".nan is no number"),
        ("{metric-command: {run: python, at-least: 1}}", "at-least"),
        ("{metric-command: wer.py}", "metric-command"),
        (
            "{min-agreement: 0.98}",
            "min-agreement is in percent: 0.98 would let anything ship. Write 98",
        ),
        ("2", "accuracy: expected `same` or a mapping, not 2. Write {max-error: 2}, or"),
        ("{}", "accuracy needs max-error, min-agreement or metric-command"),
        ("{max-error: 5%}", 'max-error must be a number of percent without a unit, not "5%".'),
    ],
)
def test_a_budget_that_is_none_is_one_line(accuracy: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(f"models: [{{path: m.onnx, accuracy: {accuracy}}}]", "tunegate.yaml")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
